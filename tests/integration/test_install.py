"""`flotilla install` and `uninstall` against a real apiserver, and the services under their own ServiceAccounts."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from flotilla_insight.installation import rbac
from tests.support.cluster import Cluster, control_plane, eventually
from tests.support.fleet import Fleet, Member
from tests.testkit.manifests import manifest

URL = "https://10.1.2.3:9876"
CLONESETS = "clonesets.apps.kruise.io"
BETA = manifest("install-beta")
ALPHA = manifest("install-alpha")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with control_plane(tmp_path_factory.mktemp("plane"), nodes=3) as running:
        yield running


def flotilla(cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flotilla_cli", *arguments, "--kubeconfig", str(cluster.kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)


def outcomes(reply: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert reply.returncode == 0, reply.stderr
    return dict(line.split(" ", 1) for line in reply.stdout.splitlines())


def present(cluster: Cluster, *objects: str) -> bool:
    return bool(cluster.kubectl("get", *objects, "--ignore-not-found", "-o", "name").strip())


def tracked(cluster: Cluster, *how: str, owner: str) -> bool:
    """Report whether a new pod of `owner` (`version/kind`) would have managedFields. `how`: kubectl's verb."""
    api_version, _, kind = owner.rpartition("/")
    reference = {"apiVersion": api_version, "kind": kind, "name": "web", "uid": "u", "controller": True}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "made", "labels": {"controller-revision-hash": "x"}, "ownerReferences": [reference]},
        "spec": {"containers": [{"name": "main", "image": "nginx:alpine"}]},
    }
    flags = ("--dry-run=server", "-o", "json", "--show-managed-fields", "-f", "-")
    made = json.loads(cluster.kubectl(*how, *flags, stdin=json.dumps(pod)))
    return "managedFields" in made["metadata"]


def _lease(name: str) -> dict[str, object]:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}


def remove(cluster: Cluster) -> None:
    reply = flotilla(cluster, "uninstall", "--force")
    assert reply.returncode == 0, reply.stderr


@pytest.fixture
def clean(cluster: Cluster):
    yield
    remove(cluster)


@pytest.fixture(scope="class")
def installed(cluster: Cluster):
    """Install for all tests of a class."""
    assert flotilla(cluster, "install").returncode == 0
    yield
    remove(cluster)


@pytest.mark.usefixtures("clean")
class TestInstall:
    def test_dry_run_changes_nothing(self, cluster: Cluster):
        told = outcomes(flotilla(cluster, "install", "--dry-run"))
        assert set(told.values()) == {"created (server dry run)"}
        assert not present(cluster, "crd", "-A")
        assert not present(cluster, "namespace", "kruise-system")

    def test_second_run_changes_nothing(self, cluster: Cluster):
        assert set(outcomes(flotilla(cluster, "install")).values()) == {"created"}
        assert set(outcomes(flotilla(cluster, "install")).values()) == {"unchanged"}

    def test_webhook_endpoint_is_switched_when_asked_and_kept_otherwise(self, cluster: Cluster):
        flotilla(cluster, "install")
        told = outcomes(flotilla(cluster, "install", "--webhook-url", URL))
        changed = {title.partition(".")[0] for title, result in told.items() if result == "configured"}
        assert changed == {
            "customresourcedefinition",
            "mutatingwebhookconfiguration",
            "validatingwebhookconfiguration",
        }
        assert set(outcomes(flotilla(cluster, "install")).values()) == {"unchanged"}
        assert set(outcomes(flotilla(cluster, "install", "--webhook-url", URL)).values()) == {"unchanged"}
        conversion = cluster.read("crd", "clonesets.apps.kruise.io")["spec"]["conversion"]
        assert conversion["webhook"]["clientConfig"] == {"url": f"{URL}/convert"}

    async def test_pods_of_our_workloads_are_created_without_managed_fields(self, cluster: Cluster):
        """Others keep theirs: foreign pods, and pods made with server-side apply."""
        policy = "mutatingadmissionpolicy.admissionregistration.k8s.io/flotilla-pods-without-managed-fields"
        assert outcomes(flotilla(cluster, "install"))[policy] == "created"
        await eventually(lambda: not tracked(cluster, "create", owner="apps.kruise.io/v1beta1/CloneSet"))
        assert not tracked(cluster, "create", owner="apps.kruise.io/v1beta1/StatefulSet")
        assert not tracked(cluster, "create", owner="apps.kruise.io/v1beta1/DaemonSet")
        assert tracked(cluster, "create", owner="apps/v1/StatefulSet")
        assert tracked(cluster, "apply", "--server-side", owner="apps.kruise.io/v1beta1/CloneSet")
        told = outcomes(flotilla(cluster, "install", "--keep-managed-fields"))
        assert told[policy] == "deleted"
        await eventually(lambda: tracked(cluster, "create", owner="apps.kruise.io/v1beta1/CloneSet"))
        assert policy not in outcomes(flotilla(cluster, "install", "--keep-managed-fields"))

    def test_one_crd_file_alone_is_an_installation(self, cluster: Cluster, tmp_path: Path):
        flotilla(cluster, "install", "-o", "yaml", "--split", str(tmp_path))
        cluster.kubectl("apply", "-f", str(tmp_path / "clonesets.apps.kruise.io.yaml"))
        cluster.kubectl("wait", "--for=condition=Established", "crd/clonesets.apps.kruise.io")
        cluster.apply(BETA)
        stored = cluster.read("clone", "web")["spec"]
        assert stored["scaleStrategy"] == {"enablePVCReuse": False, "maxUnavailable": "20%"}
        assert stored["updateStrategy"]["rollingUpdate"] == {"partition": 1, "maxSurge": "10%"}
        assert stored["template"]["spec"]["containers"][0]["fieldOfTheFuture"] == 1
        header = cluster.kubectl("get", "clone", "-o", "wide").splitlines()[0].split()
        assert " ".join(header) == (
            "NAME DESIRED UPDATED UPDATED_READY UPDATED_AVAILABLE READY TOTAL AGE CONTAINERS IMAGES SELECTOR"
        )
        cluster.kubectl("apply", "-f", str(tmp_path / "flotilla.yaml"))
        told = outcomes(flotilla(cluster, "install"))
        created = {title for title, result in told.items() if result == "created"}
        others = {f"customresourcedefinition.apiextensions.k8s.io/{path.stem}" for path in tmp_path.glob("*.*.*.yaml")}
        assert created == others - {"customresourcedefinition.apiextensions.k8s.io/clonesets.apps.kruise.io"}

    def test_old_version_is_refused_not_cut_down_while_there_is_no_webhook(self, cluster: Cluster, tmp_path: Path):
        flotilla(cluster, "install", "-o", "yaml", "--split", str(tmp_path))
        cluster.kubectl("apply", "-f", str(tmp_path / "clonesets.apps.kruise.io.yaml"))
        cluster.kubectl("wait", "--for=condition=Established", "crd/clonesets.apps.kruise.io")
        with pytest.raises(AssertionError, match="conversion webhook"):
            cluster.create(ALPHA)

    def test_uninstall_refuses_while_objects_exist(self, cluster: Cluster, tmp_path: Path):
        flotilla(cluster, "install", "-o", "yaml", "--split", str(tmp_path))
        cluster.kubectl("apply", "-f", str(tmp_path / "clonesets.apps.kruise.io.yaml"))
        cluster.kubectl("wait", "--for=condition=Established", "crd/clonesets.apps.kruise.io")
        cluster.apply(BETA)
        flotilla(cluster, "install")
        reply = flotilla(cluster, "uninstall")
        assert reply.returncode == 1
        assert "clonesets.apps.kruise.io default/web" in reply.stderr
        assert present(cluster, "validatingwebhookconfiguration", "kruise-validating-webhook-configuration")
        told = outcomes(flotilla(cluster, "uninstall", "--force"))
        assert told["customresourcedefinition.apiextensions.k8s.io/clonesets.apps.kruise.io"] == "deleted"
        assert not present(cluster, "crd", "-A")

    def test_an_installation_may_follow_a_removal_at_once(self, cluster: Cluster):
        flotilla(cluster, "install")
        told = outcomes(flotilla(cluster, "uninstall"))
        assert told["namespace/kruise-system"] == "deleted"
        assert not present(cluster, "namespace", "kruise-system", "kruise-daemon-config")
        assert set(outcomes(flotilla(cluster, "install")).values()) == {"created"}

    def test_what_is_still_being_removed_is_waited_for(self, cluster: Cluster, tmp_path: Path):
        """Else the new definition would go with the old objects."""
        flotilla(cluster, "install", "-o", "yaml", "--split", str(tmp_path))
        cluster.kubectl("apply", "-f", str(tmp_path / f"{CLONESETS}.yaml"))
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{CLONESETS}")
        held = "[kruise.io/test]"
        cluster.apply(BETA.replace("{name: web}", f"{{name: web, finalizers: {held}}}"))
        cluster.kubectl("delete", "crd", CLONESETS, "--wait=false")
        command = [sys.executable, "-m", "flotilla_cli", "install", "--kubeconfig", str(cluster.kubeconfig)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as second:
            assert second.stderr is not None
            waiting = second.stderr.readline()
            assert "waiting until customresourcedefinition.apiextensions.k8s.io/clonesets.apps.kruise.io is" in waiting
            cluster.kubectl("patch", "clone", "web", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
            told, trouble = second.communicate(timeout=60)
        assert second.returncode == 0, trouble
        assert f"customresourcedefinition.apiextensions.k8s.io/{CLONESETS} created" in told
        assert cluster.kubectl("get", "clone", "-o", "name") == ""

    def test_secrets_of_users_are_kept(self, cluster: Cluster):
        flotilla(cluster, "install")
        cluster.kubectl("create", "secret", "generic", "pull", "-n", "kruise-daemon-config")
        told = outcomes(flotilla(cluster, "uninstall"))
        assert told["namespace/kruise-daemon-config"] == "kept: it holds secrets"
        cluster.kubectl("delete", "namespace", "kruise-daemon-config")


@pytest.mark.usefixtures("installed")
class TestRights:
    """The rights of an installation, which these tests share."""

    def test_services_have_no_right_to_what_is_not_theirs(self, cluster: Cluster):
        def can(service: str, *question: str) -> bool:
            who = f"--as=system:serviceaccount:kruise-system:{rbac.account(service)}"
            return cluster.kubectl("auth", "can-i", *question, who, check=False).startswith("yes")

        system = ("-n", "kruise-system")
        assert can("webhook", "get", "secrets/kruise-webhook-certs", *system)
        assert can("webhook", "create", "secrets", *system)
        assert not can("webhook", "get", "secrets/another", *system)
        assert not any(can("webhook", verb, "secrets", *system) for verb in ("list", "watch", "update"))
        assert not can("webhook", "list", "secrets", "-A")
        assert not any(can(service, "get", "secrets", *system) for service in ("watcher", "cloneset"))

    async def test_services_write_their_own_leases_only(self, cluster: Cluster):
        """A right to create cannot be limited to names, so a policy restricts each lease to its service."""

        def write(service: str, *verb: str, name: str = "") -> str:
            """Return the apiserver's refusal; empty if it accepted the write."""
            who = f"--as=system:serviceaccount:kruise-system:{rbac.account(service)}"
            try:
                cluster.kubectl(*verb, who, "-n", "kruise-system", stdin=json.dumps(_lease(name)))
            except AssertionError as refusal:
                return str(refusal)
            return ""

        why = "a service may write its own leases only"
        create = ("create", "-f", "-")
        assert write("cloneset", *create, name="flotilla-cloneset-0") == ""
        await eventually(lambda: why in write("jobs", *create, "--dry-run=server", name="flotilla-cloneset-1"))
        change, remove = ("replace", "-f", "-"), ("delete", "lease", "flotilla-cloneset-0")
        assert why in write("jobs", *change, name="flotilla-cloneset-0")
        assert why in write("jobs", *remove)
        assert write("cloneset", *change, name="flotilla-cloneset-0") == ""
        assert write("cloneset", *create, name="flotilla-cloneset-member-x-1") == ""
        assert write("cloneset", *remove) == ""
        assert write("watcher", *create, name="flotilla-watcher-pods.core") == ""
        all_services = f"--serviceaccount=kruise-system:{rbac.account(rbac.COMPACT)}"
        role = ("--role=kruise-leader-election-role", all_services)
        cluster.kubectl("create", "rolebinding", "compact", "-n", "kruise-system", *role)
        await eventually(lambda: write(rbac.COMPACT, *create, name="flotilla-jobs-1") == "")
        cluster.kubectl("create", "-n", "kruise-system", "-f", "-", stdin=json.dumps(_lease("flotilla-jobs-0")))

    @pytest.mark.parametrize(("who", "may"), [("editor", True), ("viewer", False)])
    def test_users_are_given_rights_by_kind(self, cluster: Cluster, who: str, may: bool):
        role = f"--clusterrole=kruise-cloneset-{who}-role"
        cluster.kubectl("create", "rolebinding", who, "-n", "default", role, f"--user={who}")

        def can(*question: str) -> bool:
            return cluster.kubectl("auth", "can-i", *question, f"--as={who}", check=False).startswith("yes")

        assert can("list", "clonesets.apps.kruise.io", "-n", "default")
        assert can("get", "clonesets.apps.kruise.io/status", "-n", "default")
        assert can("create", "clonesets.apps.kruise.io", "-n", "default") == may
        assert can("patch", "clonesets.apps.kruise.io/scale", "-n", "default") == may
        assert not can("list", "clonesets.apps.kruise.io", "-n", "kube-system")
        assert not can("list", "imagepulljobs.apps.kruise.io", "-n", "default")

    def test_rules_that_users_added_to_the_extension_role_survive(self, cluster: Cluster):
        patch = '{"rules":[{"apiGroups":["batch"],"resources":["jobs"],"verbs":["get","list","watch"]}]}'
        cluster.kubectl("patch", "clusterrole", "kruise-manager-role", "--type=merge", "-p", patch)
        assert set(outcomes(flotilla(cluster, "install")).values()) == {"unchanged"}
        account = f"--as=system:serviceaccount:kruise-system:{rbac.account('cloneset')}"
        assert cluster.kubectl("auth", "can-i", "list", "jobs.batch", account, check=False).startswith("yes")


@pytest.mark.usefixtures("clean")
@pytest.mark.timeout(300)
async def test_services_need_no_more_than_their_own_roles(cluster: Cluster, tmp_path: Path):
    """Each service runs as its ServiceAccount, through a whole rollout; nothing is forbidden to it."""
    fleet = Fleet(cluster, await cluster.nats(), [])
    try:
        assert flotilla(cluster, "install", "--webhook-url", fleet.webhook_url).returncode == 0
        await _start(fleet, rbac.services(), tmp_path)
        cluster.apply(BETA.replace("partition: 1, ", ""))
        await eventually(lambda: _ready(cluster, "nginx:alpine"))
        new_image = '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"nginx:mainline"}]}}}}'
        cluster.kubectl("patch", "clone", "web", "--type=merge", "-p", new_image)
        await eventually(lambda: _ready(cluster, "nginx:mainline"))
        cluster.kubectl("scale", "clone", "web", "--replicas=1")
        await eventually(lambda: len(cluster.read("pods", "-l", "app=web")["items"]) == 1)
        cluster.kubectl("delete", "clone", "web")
        assert [line for member in fleet.members.values() for line in _denials(member)] == []
    finally:
        await fleet.stop()


async def _start(fleet: Fleet, services: Iterable[str], folder: Path) -> None:
    """Start them, each as its ServiceAccount, and wait until all are ready."""
    for service in services:
        account = _acting_as(fleet.cluster, service, folder)
        await fleet.start(service, flags=[f"--kubeconfig={account}"], wait=False)
    for name in list(fleet.members):
        await fleet.ready(name)


PULLS = manifest("install-pulls")


@pytest.mark.usefixtures("clean")
@pytest.mark.timeout(300)
async def test_image_pulls_need_no_more_than_the_role_of_their_service(cluster: Cluster, tmp_path: Path):
    """From a list to a copied secret on a node and back, as the service's own account."""
    fleet = Fleet(cluster, await cluster.nats(), ["--nodeimage-creation-delay=0s"])
    try:
        assert flotilla(cluster, "install", "--webhook-url", fleet.webhook_url).returncode == 0
        await _start(fleet, ("watcher", "webhook", "jobs"), tmp_path)
        cluster.apply(PULLS)
        await eventually(lambda: _secrets_on_nodes(cluster) == 1)
        assert len(cluster.read("secrets", "-n", "kruise-daemon-config")["items"]) == 1
        cluster.kubectl("delete", "imagelistpulljob", "pulls")
        await eventually(lambda: not cluster.read("secrets", "-n", "kruise-daemon-config")["items"])
        await eventually(lambda: not _secrets_on_nodes(cluster))
        assert [line for member in fleet.members.values() for line in _denials(member)] == []
    finally:
        await fleet.stop()
    assert cluster.read("nodeimages")["items"]
    reply = flotilla(cluster, "uninstall")
    assert reply.returncode == 0, "NodeImages contain no work of users"
    assert outcomes(reply)["customresourcedefinition.apiextensions.k8s.io/nodeimages.apps.kruise.io"] == "deleted"


WIDGETS = manifest("install-widgets")


@pytest.mark.usefixtures("clean")
@pytest.mark.timeout(300)
async def test_crds_of_others_are_counted_where_users_allow_it(cluster: Cluster, tmp_path: Path):
    """The webhook's own account may not list them before users allow it, and reports the missing right."""
    fleet = Fleet(cluster, await cluster.nats(), ["--feature-gates=DeletionProtectionForCRDCascadingGate=true"])
    try:
        assert flotilla(cluster, "install", "--webhook-url", fleet.webhook_url).returncode == 0
        await fleet.start("webhook", flags=[f"--kubeconfig={_acting_as(cluster, 'webhook', tmp_path)}"])
        cluster.apply(WIDGETS)
        cluster.kubectl("wait", "--for=condition=Established", "crd/widgets.example.com")
        for other in ("secrets", "configmaps", "deployments.apps", "widgets.example.com"):
            assert not _may_list(cluster, "webhook", other)
        refused = _refusal(cluster, "delete", "crd", "widgets.example.com")
        assert "failed to list CRs of example.com/v1, Kind=WidgetList: widgets.example.com is forbidden" in refused
        assert "needs the label policy.kruise.io/aggregate-to-crd-protection=true" in refused
        cluster.kubectl("create", "clusterrole", "count-widgets", "--verb=list", "--resource=widgets.example.com")
        cluster.kubectl("label", "clusterrole", "count-widgets", "policy.kruise.io/aggregate-to-crd-protection=true")
        await eventually(lambda: _may_list(cluster, "webhook", "widgets.example.com"))
        widget = json.dumps({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}})
        cluster.apply(widget)
        assert "active CRs 1>0" in _refusal(cluster, "delete", "crd", "widgets.example.com")
        cluster.kubectl("delete", "widget", "one")
        cluster.kubectl("delete", "crd", "widgets.example.com")
        told = outcomes(flotilla(cluster, "install", "--webhook-url", fleet.webhook_url))
        assert set(told.values()) == {"unchanged"}, "rules that were collected stay"
    finally:
        await fleet.stop()
    cluster.kubectl("delete", "clusterrole", "count-widgets")


def _may_list(cluster: Cluster, service: str, what: str) -> bool:
    account = f"--as=system:serviceaccount:{rbac.NAMESPACE}:{rbac.account(service)}"
    return cluster.kubectl("auth", "can-i", "list", what, "-A", account, check=False).startswith("yes")


def _refusal(cluster: Cluster, *arguments: str) -> str:
    with pytest.raises(AssertionError) as refused:
        cluster.kubectl(*arguments)
    return str(refused.value)


def _secrets_on_nodes(cluster: Cluster) -> int:
    """Return how many NodeImages refer to a copy of a secret."""
    images = [item.get("spec", {}).get("images", {}) for item in cluster.read("nodeimages")["items"]]
    return sum(bool(spec.get("pullSecrets")) for held in images for spec in held.values())


def _denials(member: Member) -> list[str]:
    lines = Path(member.process.log).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if "forbidden" in line.lower()]


def _acting_as(cluster: Cluster, service: str, folder: Path) -> Path:
    config = yaml.safe_load(cluster.kubeconfig.read_text(encoding="utf-8"))
    config["users"][0]["user"]["as"] = f"system:serviceaccount:{rbac.NAMESPACE}:{rbac.account(service)}"
    path = folder / f"{service}.kubeconfig"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def _ready(cluster: Cluster, image: str) -> bool:
    status = cluster.read("clone", "web").get("status", {})
    pods = cluster.read("pods", "-l", "app=web")["items"]
    images = {pod["spec"]["containers"][0]["image"] for pod in pods}
    return status.get("updatedReadyReplicas") == 2 == status.get("replicas") and images == {image}
