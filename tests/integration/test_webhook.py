"""The webhook service against a real apiserver: admission, conversion, protection, and a registration that heals.

The service runs in this process and is called at its URL, so kubectl runs in threads.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from typing import Any, cast

import msgspec
import pytest
import pytest_asyncio
from cryptography import x509

from flotilla_cli.cluster.ports import free_ports
from flotilla_cli.install.manifests import manifests
from flotilla_common.api.webhooks import MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION
from flotilla_common.bus.interface import Bus
from flotilla_common.clock import SystemClock, SystemEntropy
from flotilla_common.gates import Gates
from flotilla_common.health import Health
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import load_config
from flotilla_common.service import Context
from flotilla_common.settings import Settings
from flotilla_webhook import app
from tests.support.cluster import Cluster, control_plane

GATES = "KruisePodReadinessGate=true,DeletionProtectionForCRDCascadingGate=true"
LABEL = "policy.kruise.io/delete-protection"
pytestmark = pytest.mark.asyncio(loop_scope="module")


class Running:
    """A cluster with the webhook service in front of it."""

    def __init__(self, cluster: Cluster, port: int, health: Health) -> None:
        self.cluster = cluster
        self.port = port
        self.health = health

    async def kubectl(self, *arguments: str, stdin: str = "") -> str:
        return await asyncio.to_thread(self.cluster.kubectl, *arguments, stdin=stdin)

    async def refused(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl says when the command is refused."""
        with pytest.raises(AssertionError) as refusal:
            await self.kubectl(*arguments, stdin=stdin)
        return str(refusal.value)

    async def read(self, *arguments: str) -> dict[str, Any]:
        return json.loads(await self.kubectl("get", *arguments, "-o", "json"))

    async def apply(self, document: dict[str, Any]) -> dict[str, Any]:
        return json.loads(await self.kubectl("apply", "-o", "json", "-f", "-", stdin=json.dumps(document)))

    async def ca_bundles(self) -> set[str]:
        """Every caBundle of both configurations and the CRD."""
        bundles: set[str] = set()
        for kind, name in (
            ("mutatingwebhookconfigurations", MUTATING_CONFIGURATION),
            ("validatingwebhookconfigurations", VALIDATING_CONFIGURATION),
        ):
            bundles |= {
                entry["clientConfig"].get("caBundle", "") for entry in (await self.read(kind, name))["webhooks"]
            }
        crd = await self.read("crd", "clonesets.apps.kruise.io")
        return bundles | {crd["spec"]["conversion"]["webhook"]["clientConfig"].get("caBundle", "")}

    async def serial(self) -> int:
        """The serial number of the certificate that a new connection is shown."""
        trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        _, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=trust)
        shown = cast("ssl.SSLObject", writer.get_extra_info("ssl_object")).getpeercert(binary_form=True)
        writer.close()
        await writer.wait_closed()
        assert shown is not None
        return x509.load_der_x509_certificate(shown).serial_number


async def eventually(check: Any, seconds: float = 60) -> None:
    clock = SystemClock()
    async with asyncio.timeout(seconds):
        while not await check():
            await clock.sleep(0.1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    (port,) = free_ports(1)
    async with control_plane(tmp_path_factory.mktemp("plane"), nodes=1) as cluster:
        settings = Settings(
            kubeconfig=str(cluster.kubeconfig),
            webhook_url=f"https://127.0.0.1:{port}",
            webhook_port=port,
            webhook_cert_dir=str(tmp_path_factory.mktemp("certs")),
            protection_log_path=str(tmp_path_factory.mktemp("log")),
            feature_gates=GATES,
        )
        # The installation knows nothing of the gates that arm the pod rule, nor of the URL: the service sees to both.
        items = json.loads(msgspec.json.encode(manifests(Gates.parse(""))))
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        await asyncio.to_thread(cluster.kubectl, "apply", "--server-side", "-f", "-", stdin=listed)
        api = KubeClient(await load_config(settings), user_agent="kruise-manager/webhook")
        health = Health()
        context = Context(
            service="webhook",
            settings=settings,
            gates=settings.gates(),
            api=api,
            bus=cast("Bus", None),
            clock=SystemClock(),
            entropy=SystemEntropy(),
            health=health,
            replica="test",
        )
        service = asyncio.create_task(app.run(context))
        try:
            here = Running(cluster, port, health)
            await eventually(lambda: _ready(service, health))
            yield here
        finally:
            service.cancel()
            await asyncio.gather(service, return_exceptions=True)
            await api.close()


async def _ready(service: asyncio.Task[None], health: Health) -> bool:
    if service.done():
        service.result()
    return "[+]webhook-ready" in health.report()


def cloneset(name: str, version: str = "v1beta1", **spec: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "nginx:alpine"}]},
    }
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "CloneSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template} | spec,
    }


async def test_defaults_are_stored(running: Running) -> None:
    spec = (await running.apply(cloneset("plain")))["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"]) == (1, 10)
    assert spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == "20%"
    assert spec["template"]["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    assert spec["template"]["metadata"]["creationTimestamp"] is None


async def test_both_versions_are_served(running: Running) -> None:
    await running.apply(cloneset("old", "v1alpha1", updateStrategy={"type": "InPlaceIfPossible", "partition": "50%"}))
    old = await running.read("clonesets.v1alpha1.apps.kruise.io", "old")
    assert old["spec"]["updateStrategy"]["type"] == "InPlaceIfPossible"
    new = await running.read("clonesets.v1beta1.apps.kruise.io", "old")
    assert new["spec"]["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"] == "InPlaceIfPossible"
    assert new["spec"]["updateStrategy"]["rollingUpdate"]["partition"] == "50%"
    assert new["spec"]["scaleStrategy"]["enablePVCReuse"] is True
    listed = await running.kubectl("get", "clonesets.v1alpha1.apps.kruise.io")
    assert "old" in listed


async def test_field_errors_are_kubernetes_own(running: Running) -> None:
    broken = cloneset("broken", updateStrategy={"rollingUpdate": {"maxUnavailable": "5"}})
    broken["spec"]["template"]["spec"]["containers"].append({"name": "main", "image": ""})
    message = await running.refused("apply", "-f", "-", stdin=json.dumps(broken))
    assert 'admission webhook "vcloneset.kb.io" denied the request: [' in message
    assert 'spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "5"' in message
    assert 'spec.template.spec.containers[1].name: Duplicate value: "main"' in message


async def test_what_the_cluster_does_not_know_is_warned_of(running: Running) -> None:
    document = cloneset("typo")
    document["spec"]["template"]["spec"]["containers"][0]["imagePullPolici"] = "Always"
    command = ["apply", "--dry-run=server", "-f", "-", "--warnings-as-errors"]
    told = await running.refused(*command, stdin=json.dumps(document))
    assert 'unknown field "spec.template.spec.containers[0].imagePullPolici"' in told
    await running.kubectl(*command, stdin=json.dumps(cloneset("fine")))


async def test_a_changed_selector_and_a_missing_pod_are_refused(running: Running) -> None:
    await running.apply(cloneset("fixed", "v1alpha1"))
    patch = {"spec": {"selector": {"matchLabels": None, "matchExpressions": [{"key": "app", "operator": "Exists"}]}}}
    assert "spec: Forbidden" in await running.refused(
        "patch", "clonesets.v1alpha1.apps.kruise.io", "fixed", "--type=merge", "-p", json.dumps(patch)
    )
    patch = {"spec": {"scaleStrategy": {"podsToDelete": ["nobody"]}}}
    arguments = ("--type=merge", "-p", json.dumps(patch))
    assert "find pod nobody failed" in await running.refused(
        "patch", "clonesets.v1alpha1.apps.kruise.io", "fixed", *arguments
    )
    await running.kubectl("patch", "clonesets.v1beta1.apps.kruise.io", "fixed", *arguments)


async def test_a_stored_template_without_defaults_stays_as_it_is(running: Running) -> None:
    before = await running.apply(cloneset("steady"))
    await running.kubectl("scale", "clone", "steady", "--replicas=2")  # past the webhook, through /scale
    await running.kubectl("patch", "clone", "steady", "--type=merge", "-p", '{"spec":{"replicas":3}}')
    after = await running.read("clone", "steady")
    assert after["spec"]["replicas"] == 3
    assert after["spec"]["template"] == before["spec"]["template"]


async def test_deletion_protection(running: Running) -> None:
    await running.apply(cloneset("kept", replicas=2))
    await running.kubectl("label", "clone", "kept", f"{LABEL}=Cascading")
    refused = await running.refused("delete", "clone", "kept")
    assert f"forbidden by ResourcesProtectionDeletion for {LABEL}=Cascading and replicas 2>0" in refused
    await running.kubectl("scale", "clone", "kept", "--replicas=0")
    await running.kubectl("delete", "clone", "kept")

    await running.kubectl("create", "deployment", "kept", "--image=nginx:alpine")
    await running.kubectl("label", "deployment", "kept", f"{LABEL}=Always")
    assert f"{LABEL}=Always" in await running.refused("delete", "deployment", "kept", "--cascade=orphan")
    await running.kubectl("label", "deployment", "kept", f"{LABEL}-")
    await running.kubectl("delete", "deployment", "kept")


async def test_namespace_protection_counts_pods(running: Running) -> None:
    await running.kubectl("create", "namespace", "guarded")
    await running.kubectl("label", "namespace", "guarded", f"{LABEL}=Cascading")
    await running.kubectl("run", "alive", "-n", "guarded", "--image=nginx:alpine")
    refused = await running.refused("delete", "namespace", "guarded", "--dry-run=server")
    assert "=Cascading and active pods 1>0" in refused
    await running.kubectl("delete", "pod", "alive", "-n", "guarded", "--now")
    await running.kubectl("delete", "namespace", "guarded", "--wait=false")


async def test_crd_protection_counts_objects(running: Running) -> None:
    await running.apply(cloneset("counted"))
    await running.kubectl("label", "crd", "clonesets.apps.kruise.io", f"{LABEL}=Cascading")
    refused = await running.refused("delete", "crd", "clonesets.apps.kruise.io")
    assert "=Cascading and active CRs" in refused
    await running.kubectl("label", "crd", "clonesets.apps.kruise.io", f"{LABEL}-")


async def test_the_armed_pod_rule_adds_the_gate(running: Running) -> None:
    await running.kubectl("run", "bare", "--image=nginx:alpine")
    pod = await running.read("pod", "bare")
    assert pod["spec"]["readinessGates"] == [{"conditionType": "KruisePodReady"}]
    await running.kubectl("run", "exempt", "-n", "kube-system", "--image=nginx:alpine")
    exempt = await running.read("pod", "exempt", "-n", "kube-system")
    assert "readinessGates" not in exempt["spec"]


async def test_an_edited_ca_bundle_is_repaired(running: Running) -> None:
    (good,) = await running.ca_bundles()
    patch = [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": ""}]
    await running.kubectl(
        "patch", "mutatingwebhookconfiguration", MUTATING_CONFIGURATION, "--type=json", "-p", json.dumps(patch)
    )

    async def repaired() -> bool:
        return await running.ca_bundles() == {good}

    await eventually(repaired)


async def test_registration_is_written_only_when_it_differs(running: Running) -> None:
    before = await running.read("mutatingwebhookconfiguration", MUTATING_CONFIGURATION)
    await running.kubectl("annotate", "crd", "clonesets.apps.kruise.io", "touched=yes")
    await SystemClock().sleep(1)
    after = await running.read("mutatingwebhookconfiguration", MUTATING_CONFIGURATION)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_a_deleted_secret_rotates_everything_and_nobody_notices(running: Running) -> None:
    before, bundles = await running.serial(), await running.ca_bundles()
    await running.apply(cloneset("busy"))
    done = asyncio.Event()

    async def write_and_read() -> int:
        rounds = 0
        while not done.is_set():
            patch = json.dumps({"spec": {"minReadySeconds": rounds % 5}})
            await running.kubectl("patch", "clonesets.v1alpha1.apps.kruise.io", "busy", "--type=merge", "-p", patch)
            await running.kubectl("get", "clonesets.v1alpha1.apps.kruise.io", "busy")
            rounds += 1
        return rounds

    user = asyncio.create_task(write_and_read())
    await running.kubectl("delete", "secret", "kruise-webhook-certs", "-n", "kruise-system")

    async def rotated() -> bool:
        now = await running.ca_bundles()
        return await running.serial() != before and len(now) == 1 and not now & bundles

    await eventually(rotated)
    done.set()
    assert await user >= 2
    assert not running.health.waiting
