"""`flotilla doctor` against a real installation: no findings in a healthy one, and every planted fault by name.

Faults that do not hide each other are planted together: each run has to wait for heartbeats. The tests build on each
other, from a healthy installation to one whose bus is dead.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from flotilla_cli.local import HOST
from flotilla_common.api.documents import Json
from flotilla_common.bus import subjects
from flotilla_common.bus.heartbeat import NODE_AGENT, VERSION
from flotilla_common.clock import SystemClock
from flotilla_common.control.leases import micro_time
from flotilla_dev.cluster.ports import is_free
from flotilla_insight.doctor.finding import UNWELL, WELL
from flotilla_insight.installation.rbac import NAMESPACE
from tests.support import set_clock
from tests.support.certificates import Authority
from tests.support.cluster import control_plane, eventually
from tests.support.doctor import doctor, named
from tests.support.fleet import Fleet, fleet
from tests.testkit.manifests import manifest

SERVICES = ("watcher", "cloneset", "webhook", "jobs", "statefulset", "daemonset", "sidecar")
MUTATING = "kruise-mutating-webhook-configuration"
NODES = "kube_core_nodes"
AGED = 21.0  # seconds after which a marker counts as old

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flotilla(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    """Run all services on a control plane of their own."""
    async with control_plane(tmp_path_factory.mktemp("plane")) as cluster, fleet(cluster, SERVICES) as running:
        yield running


async def test_nothing_is_found_where_all_is_well(flotilla: Fleet) -> None:
    code, report = await doctor(flotilla)
    assert (code, report["findings"], report["notChecked"]) == (WELL, [], {})


def plant_objects(flotilla: Fleet) -> None:
    """Plant missing and excessive rights, and leftovers of OpenKruise."""
    cluster = flotilla.cluster
    cluster.create(LEFTOVERS.replace("NOW", micro_time(SystemClock().now())))
    cluster.kubectl("label", "namespace", NAMESPACE, "control-plane-")
    rules = '[{"op": "replace", "path": "/rules/0/verbs", "value": ["patch"]}]'
    cluster.kubectl("patch", "clusterrole", "flotilla-jobs", "--type=json", "-p", rules)
    account = f"--serviceaccount={NAMESPACE}:flotilla-sidecar"
    cluster.kubectl("create", "clusterrolebinding", "too-much", "--clusterrole=cluster-admin", account)


LEFTOVERS = manifest("doctor-leftovers")


@asynccontextmanager
async def others_speak(flotilla: Fleet) -> AsyncGenerator[None]:
    """Send heartbeats of an agent without a runtime and a service of another release, for the time of the block."""
    runtime = {"runtime": "no container runtime works: /run/containerd/containerd.sock: no such file"}
    beats: list[Json] = [
        {"service": NODE_AGENT, "replica": "kwok-0", "version": VERSION, "waiting": runtime},
        {"service": "webhook", "replica": "older", "version": "0.0.9", "waiting": {}},
    ]

    async with flotilla.bus() as bus:

        async def speak() -> None:
            while True:
                for beat in beats:
                    subject = subjects.heartbeat(beat["service"], beat["replica"])
                    bus.publish_soon(subject, msgspec.json.encode(beat))
                await asyncio.sleep(1)

        speaking = asyncio.ensure_future(speak())
        try:
            yield
        finally:
            speaking.cancel()


async def limit_stream(flotilla: Fleet) -> None:
    """Edit a stream."""
    async with flotilla.bus() as bus:
        info = json.loads(await bus.request(f"$JS.API.STREAM.INFO.{NODES}", b"", 5))
        changed = json.dumps(info["config"] | {"max_msgs": 1000}).encode()
        answer = json.loads(await bus.request(f"$JS.API.STREAM.UPDATE.{NODES}", changed, 5))
        assert "error" not in answer


async def test_every_fault_is_named(flotilla: Fleet, tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    plant_objects(flotilla)
    await limit_stream(flotilla)
    await flotilla.start("statefulset", replica="gated", flags=["--feature-gates=SidecarTerminator=true"], wait=False)
    await flotilla.start("sidecar", replica="sharded", flags=["--shards=4"], wait=False)
    await flotilla.start("cloneset", replica="late", program=set_clock.command(clock, "flotilla_cli"), wait=False)
    replicas = {name: f"{name}-{flotilla.members[name].health}" for name in flotilla.members}
    for name in ("statefulset-gated", "sidecar-sharded", "cloneset-late"):
        await flotilla.ready(name)
    set_clock.put(clock, -300)
    async with others_speak(flotilla):
        code, report = await doctor(flotilla)
    assert code == UNWELL
    assert named(report) == {
        ("NamespaceNotExempt", f"namespace {NAMESPACE}"),
        ("RightsLacking", "ServiceAccount flotilla-jobs"),
        ("RightsTooBroad", "ServiceAccount flotilla-sidecar"),
        ("OpenKruiseRuns", f"Deployment kruise-controller-manager in {NAMESPACE}"),
        ("OpenKruiseRuns", "lease kruise-manager"),
        ("WebhookNobodyAnswers", "ValidatingWebhookConfiguration left-behind"),
        ("StreamSettings", f"stream {NODES}"),
        ("GatesDiffer", "feature gates"),
        ("ShardsDisagree", "sidecar"),
        ("ClockOff", f"cloneset {replicas['cloneset-late']}"),
        ("RuntimeUnanswered", "agent of kwok-0"),
        ("VersionSkew", "webhook older"),
    }


@asynccontextmanager
async def instead_of_the_webhook(flotilla: Fleet, folder: Path) -> AsyncGenerator[None]:
    """Serve the webhook's port with an expired certificate."""

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Authority(folder).pair(-timedelta(hours=2)))
    flotilla.kill("webhook")
    await eventually(lambda: is_free(flotilla.webhook_port))
    server = await asyncio.start_server(hang_up, HOST, flotilla.webhook_port, ssl=context)
    async with server:
        yield


async def test_what_hides_others_is_named_too(flotilla: Fleet, tmp_path: Path) -> None:
    async with flotilla.bus() as bus:
        flotilla.pause("watcher")
        paused = asyncio.get_running_loop().time()
        answer = json.loads(await bus.request("$JS.API.STREAM.DELETE.kube_core_namespaces", b"", 5))
        assert answer["success"]
    flotilla.kill("jobs")
    flotilla.cluster.kubectl("delete", "crd", "imagelistpulljobs.apps.kruise.io")
    async with instead_of_the_webhook(flotilla, tmp_path):
        await eventually(lambda: asyncio.get_running_loop().time() - paused > AGED, AGED + 5)
        code, report = await doctor(flotilla)
    assert code == UNWELL
    assert named(report) >= {
        ("CRDMissing", "CRD imagelistpulljobs.apps.kruise.io"),
        ("ServiceSilent", "watcher"),
        ("ServiceSilent", "jobs"),
        ("ServiceSilent", "webhook"),
        ("WebhookUntrusted", "webhook"),
        ("CertificateExpired", "certificate of the webhook"),
        ("StreamMissing", "stream kube_core_namespaces"),
        ("MarkerStale", "stream kube_core_pods"),
    }


async def test_a_dead_bus_is_named_and_hides_only_what_is_on_it(flotilla: Fleet) -> None:
    await flotilla.kill_bus()
    code, report = await doctor(flotilla)
    assert code == UNWELL
    about = f"bus at {flotilla.nats.url}"
    assert ("BusUnreachable", about) in named(report)
    assert ("LeaseExpired", "lease flotilla-jobs-0") in named(report)
    assert {"services", "streams", "mirrors", "agents", "gates"} <= set(report["notChecked"])
