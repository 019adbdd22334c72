"""Stuck rollouts on real nodes, and the sentence with which `flotilla explain` names the cause of each.

All of them begin together, each in a namespace of its own name. A node loses its kubelet on the way.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

import pytest
import pytest_asyncio
from click.testing import CliRunner

from flotilla_cli.main import main
from flotilla_common.clock import SystemClock
from tests.cluster.conftest import Running
from tests.support.cluster import eventually
from tests.support.nodes import RealCluster
from tests.support.stuck import (
    QUICK,
    claimed,
    cloneset,
    create,
    denying_webhook,
    placed,
    plain,
    policy,
    ready_pods,
    refuses_pods,
    shell,
    sidecarset,
    statefulset,
    webhook,
)
from tests.testkit.documents import Json

PATIENCE = 120
LOST = "real-2"
NEW_IMAGE = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "busybox:1.36"}]
NEW_SIDECAR = [{"op": "replace", "path": "/spec/containers/0/image", "value": "busybox:nope"}]
UPDATE = ("patch", "clonesets.apps.kruise.io", "web", "--type=json", "-p", json.dumps(NEW_IMAGE))
SCALE_DOWN = ("scale", "clonesets.apps.kruise.io/web", "--replicas=0")
SETTING = {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}}
HEALTH = {"httpGet": {"path": "/health", "port": 80}}
DRAINED = {"preDelete": {"labelsHandler": {"example.com/drain": "true"}}}
MIGRATION = {"name": "migrate", "image": "busybox:1.37", **shell("echo schema is locked; exit 5")}
TLS = {
    "volumes": [{"name": "tls", "secret": {"secretName": "tls"}}],
    "volumeMounts": [{"name": "tls", "mountPath": "/tls"}],
}
LIMITS = {"limits": [{"type": "Container", "max": {"cpu": "200m"}}]}


class Row(NamedTuple):
    """One scenario, in the namespace `name`."""

    name: str
    objects: Sequence[Json]
    line: str
    """The start of the output. `…` matches anything, `web-*` a pod's name."""
    about: str = "cloneset web"
    ready: int = 0  # pods that have to be ready before the rest
    then: Sequence[str] = ()  # of kubectl


TABLE = [
    Row(
        "image-not-found",
        [cloneset(2, image="nginx:nope", spec={"progressDeadlineSeconds": 10})],
        (
            "stuck: web-*, web-*: image nginx:nope of container app cannot be pulled (ErrImagePull): "
            "…nginx:nope: not found"
        ),
    ),
    Row(
        "image-name",
        [cloneset(image="Nginx:1.25")],
        (
            "stuck: web-*: image Nginx:1.25 of container app cannot be pulled (InvalidImageName): couldn't "
            "parse image name"
        ),
    ),
    Row(
        "image-never",
        [cloneset(image="nginx:nope", imagePullPolicy="Never")],
        "stuck: web-*: image nginx:nope of container app cannot be pulled (ErrImageNeverPull): it is not on the node",
    ),
    Row(
        "crash-loop",
        [cloneset(**shell("echo connecting; echo db: connection refused; exit 3"))],
        'stuck: web-*: container app crashes with exit code 3 (…last words: "db: connection refused"',
    ),
    Row(
        "termination-message",
        [cloneset(**shell("echo no license > /dev/termination-log; exit 4"))],
        'stuck: web-*: container app crashes with exit code 4 (…last words: "no license"',
    ),
    Row(
        "out-of-memory",
        [cloneset(**shell("tail /dev/zero"), resources={"limits": {"memory": "16Mi"}})],
        "stuck: web-*: container app is OOMKilled: over its memory limit of 16Mi",
    ),
    Row(
        "ends-by-itself",
        [cloneset(**shell("echo all done"))],
        "stuck: web-*: container app ends by itself with exit code 0, but should keep running",
    ),
    Row(
        "command-not-found",
        [cloneset(command=["/bin/no-such-server"])],
        'stuck: web-*: container app cannot be started: exec: "/bin/no-such-server": …no such file or directory',
    ),
    Row(
        "config-map",
        [cloneset(env=[SETTING])],
        'stuck: web-*: container app cannot be made: configmap "settings" not found',
    ),
    Row(
        "secret-volume",
        [cloneset(**TLS)],
        'stuck: web-*: a volume cannot be mounted: MountVolume.SetUp failed for volume "tls" : secret "tls" not found',
    ),
    Row(
        "runs-as-root",
        [cloneset(securityContext={"runAsNonRoot": True})],
        "stuck: web-*: container app cannot be made: container has runAsNonRoot and image will run as root",
    ),
    Row(
        "post-start-hook",
        [cloneset(lifecycle={"postStart": {"exec": {"command": ["false"]}}})],
        "stuck: web-*: container app is stopped each time, its postStart hook fails",
    ),
    Row(
        "init-container",
        [cloneset(initContainers=[MIGRATION])],
        'stuck: web-*: init container migrate crashes with exit code 5 (…last words: "schema is locked"',
    ),
    Row(
        "readiness-probe",
        [cloneset(image="nginx:1.25", command=None, readinessProbe=QUICK | HEALTH)],
        "stuck: web-*: container app fails its readiness probe (GET /health on port 80): "
        "HTTP probe failed with statuscode: 404",
    ),
    Row(
        "liveness-probe",
        [cloneset(livenessProbe=QUICK | {"exec": {"command": ["cat", "/healthy"]}})],
        "…: web-*: container app is restarted, its liveness probe fails: cat: can't open '/healthy': No such file",
    ),
    Row(
        "startup-probe",
        [cloneset(startupProbe=QUICK | {"tcpSocket": {"port": 9}})],
        "stuck: web-*: container app is restarted, its startup probe fails: dial tcp …: connect: connection refused",
    ),
    Row(
        "readiness-gate",
        [cloneset(readinessGates=[{"conditionType": "example.com/traffic"}])],
        (
            "stuck: web-*: readiness gate example.com/traffic is not set: whoever is to set this condition on "
            "the pod has not"
        ),
    ),
    Row(
        "cpu",
        [cloneset(resources={"requests": {"cpu": "500"}})],
        "stuck: web-*: no node takes it: 0/3 nodes are available: …2 Insufficient cpu",
    ),
    Row(
        "node-selector",
        [cloneset(nodeSelector={"disk": "ssd"})],
        "stuck: web-*: no node takes it: 0/3 nodes are available: …didn't match Pod's node affinity/selector",
    ),
    Row(
        "scheduling-gate",
        [cloneset(schedulingGates=[{"name": "example.com/budget"}])],
        "stuck: web-*: scheduling gate example.com/budget holds it until the gate is removed",
    ),
    Row(
        "claim",
        [cloneset(spec=claimed("fast"))],
        (
            "stuck: web-*: claim data-web-* of storage class fast is not bound: storageclass.storage.k8s.io "
            '"fast" not found'
        ),
    ),
    Row(
        "quota",
        [plain("ResourceQuota", "small", {"hard": {"pods": "1"}}), cloneset(3)],
        'stuck: creating Pod web-* is refused: pods "web-*" is forbidden: exceeded quota: small, requested: pods=1, …',
    ),
    Row(
        "limit-range",
        [plain("LimitRange", "limits", LIMITS), cloneset(resources={"limits": {"cpu": "1"}})],
        "stuck: creating Pod web-* is refused: …is forbidden: maximum cpu usage per Container is 200m, but limit is 1",
    ),
    Row(
        "service-account",
        [cloneset(serviceAccountName="robot")],
        'stuck: creating Pod web-* is refused: …error looking up service account …: serviceaccount "robot" not found',
    ),
    Row(
        "runtime-class",
        [cloneset(runtimeClassName="gvisor")],
        'stuck: creating Pod web-* is refused: …pod rejected: RuntimeClass "gvisor" not found',
    ),
    Row(
        "policy",
        [*policy("policy", "no busybox here"), cloneset()],
        (
            "stuck: creating Pod web-* is refused: …ValidatingAdmissionPolicy 'policy' with binding 'policy' "
            "denied request: no"
        ),
    ),
    Row(
        "webhook-unreachable",
        [webhook("gone.example.com", "webhook-unreachable", "https://127.0.0.1:1/"), cloneset()],
        'stuck: creating Pod web-* is refused: …failed calling webhook "gone.example.com": …connection refused',
    ),
    Row(
        "webhook-denies",
        [cloneset()],
        (
            'stuck: creating Pod web-* is refused: admission webhook "signed.example.com" denied the request: '
            "images must be s"
        ),
    ),
    Row(
        "finalizer",
        [cloneset(metadata={"finalizers": ["example.com/backup"]})],
        "stuck: web-*: terminating, held by finalizer example.com/backup, until whoever set that removes it",
        ready=1,
        then=SCALE_DOWN,
    ),
    Row(
        "pre-delete-hook",
        [cloneset(metadata={"labels": {"example.com/drain": "true"}}, spec={"lifecycle": DRAINED})],
        "stuck: web-*: PreparingDelete: nobody has answered the preDelete hook: "
        "whoever is to answer it has to take off label example.com/drain=true",
        ready=1,
        then=SCALE_DOWN,
    ),
    Row(
        "paused",
        [cloneset(2, spec={"updateStrategy": {"rollingUpdate": {"paused": True}}})],
        "on hold: paused by the user: 0 of 2 pods updated",
        ready=2,
        then=UPDATE,
    ),
    Row(
        "partition",
        [cloneset(2, spec={"updateStrategy": {"rollingUpdate": {"partition": 1}}})],
        "on hold: 1 of 2 pods updated, partition 1 keeps the other 1 on older revisions",
        ready=2,
        then=UPDATE,
    ),
    Row(
        "statefulset-image",
        [statefulset(image="nginx:nope")],
        "stuck: web-0…: image nginx:nope of container app cannot be pulled (ErrImagePull): …nginx:nope: not found",
        about="statefulset web",
    ),
    Row(
        "statefulset-claim",
        [statefulset(spec=claimed("slow"))],
        (
            "stuck: web-0: claim data-web-0 of storage class slow is not bound: storageclass.storage.k8s.io "
            '"slow" not found'
        ),
        about="statefulset web",
    ),
    Row(
        "sidecarset",
        [sidecarset("sidecarset", "busybox:1.37"), cloneset(2)],
        "stuck: sidecarset/web-*: image busybox:nope of container log cannot be pulled (ErrImagePull): …not found",
        about="sidecarset sidecarset",
        ready=2,
        then=("patch", "sidecarset", "sidecarset", "--type=json", "-p", json.dumps(NEW_SIDECAR)),
    ),
    Row(
        "node-lost",
        [cloneset(nodeName=LOST)],
        f"stuck: web-*: node {LOST} is not ready: its kubelet is silent, it renewed its lease last at …",
    ),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(running: Running, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """Start all scenarios."""
    cluster = running.cluster
    with denying_webhook(tmp_path_factory.mktemp("webhook")) as (url, authority):
        await begin(cluster, webhook("signed.example.com", "webhook-denies", url, authority))
        await eventually(lambda: ready_pods(cluster, "node-lost") == 1, PATIENCE)
        await cluster.kill(LOST, "kubelet")
        for row in TABLE:
            if row.then:
                await eventually(lambda row=row: ready_pods(cluster, row.name) == row.ready, PATIENCE)
                cluster.kubectl("-n", row.name, *row.then)
        yield running


async def begin(cluster: RealCluster, denying: Json) -> None:
    """Create all objects of all rows: admission first, and a SidecarSet before its pods.

    The node that will be lost gets no pods but its own.
    """
    cluster.kubectl("cordon", LOST)
    create(cluster, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": row.name}} for row in TABLE])
    objects = [placed(one, row.name) for row in TABLE for one in row.objects]
    early = [one for one in objects if one["apiVersion"].startswith("admission") or one["kind"] == "SidecarSet"]
    create(cluster, [denying, *early])
    for namespace in (row.name for row in TABLE if row.name.startswith(("policy", "webhook"))):
        await eventually(lambda namespace=namespace: refuses_pods(cluster, namespace), PATIENCE)
    create(cluster, [one for one in objects if one not in early])


@pytest.fixture
def operator(scene: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the environment of a user of the command line."""
    nats = scene.fleet.nats
    monkeypatch.setenv("KUBECONFIG", str(scene.cluster.kubeconfig))
    monkeypatch.setenv("FLOTILLA_NATS", nats.url)
    monkeypatch.setenv("FLOTILLA_NATS_CREDS", nats.credentials)
    if nats.authority:
        monkeypatch.setenv("FLOTILLA_NATS_CA", nats.authority)


def flotilla(*arguments: str) -> str:
    """Run the command and return its output."""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.output


def matches(line: str, expected: str) -> bool:
    """Report whether the line begins as expected: `…` matches anything, `web-*` the name of a pod."""
    pattern = re.escape(expected).replace("…", ".*").replace(r"web\-\*", r"web-\w+")
    return re.match(pattern, line) is not None


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("row", TABLE, ids=[row.name for row in TABLE])
async def test_the_first_line_names_the_cause(row: Row) -> None:
    said = list[str]()
    try:
        async with asyncio.timeout(PATIENCE):
            while not said or not matches(said[-1], row.line):
                await SystemClock().sleep(0.2 if said else 0)
                output = await asyncio.to_thread(flotilla, "explain", *row.about.split(), "-n", row.name)
                said.append(output.splitlines()[0])
    except TimeoutError:
        raise AssertionError("\n".join(dict.fromkeys(said))) from None


PULL = r"web-\w+, web-\w+: image nginx:nope of container app cannot be pulled \(ErrImagePull\): .*nginx:nope: not found"


@pytest.mark.usefixtures("operator")
async def test_the_tree_and_the_document_say_the_same() -> None:
    tree = await asyncio.to_thread(flotilla, "get", "cloneset", "web", "-n", "image-not-found")
    assert re.search(rf"├── {PULL}\n", tree)
    found: Json = json.loads(
        await asyncio.to_thread(flotilla, "explain", "cloneset", "web", "-n", "image-not-found", "-o", "json")
    )
    assert found["verdict"] == "stuck"
    assert re.fullmatch(PULL, found["sentence"])
    assert {reason["code"] for reason in found["reasons"]} >= {"ErrImagePull"}, "the service knows it, too"
    [cause] = found["causes"]
    assert (cause["code"], len(cause["objects"])) == ("ErrImagePull", 2)


@pytest.mark.usefixtures("operator")
async def test_a_rollout_that_takes_too_long_says_why_beside_its_condition(scene: Running) -> None:
    def message() -> str:
        conditions: list[Json] = scene.cluster.read("-n", "image-not-found", "clonesets", "web")["status"]["conditions"]
        return next(one["message"] for one in conditions if one["type"] == "Progressing")

    await eventually(lambda: "has timed out progressing" in message(), PATIENCE)
    assert re.fullmatch(r"CloneSet revision web-\w+ has timed out progressing", message())
    found = await asyncio.to_thread(flotilla, "explain", "cloneset", "web", "-n", "image-not-found", "-o", "json")
    told = {reason["code"]: reason["message"] for reason in json.loads(found)["reasons"]}
    assert re.fullmatch(
        rf"CloneSet revision web-\w+ has timed out progressing: {PULL}", told["ProgressDeadlineExceeded"]
    )


@pytest.mark.usefixtures("operator")
async def test_what_does_not_exist_is_said_to(scene: Running) -> None:
    result = await asyncio.to_thread(CliRunner().invoke, main, ["explain", "cloneset", "wep", "-n", "quota"])
    assert (result.exit_code, result.output) == (1, "Error: CloneSet quota/wep does not exist\n")
