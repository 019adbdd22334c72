"""The chart on three real nodes while its own pods come and go: rollouts of 200 pods continue, and nothing is lost.

The pods of the rollouts are on fake nodes, because two hundred real ones would prove nothing more about Flotilla; its
own pods are on the real ones. Rollouts follow each other as long as a disturbance lasts, and the whole history of each
is checked (`tests.support.observer`).
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.audit import AuditLog
from tests.support.cluster import eventually
from tests.support.helm import Release, release
from tests.support.nodes import real_cluster
from tests.support.scene import Rollout, rollout, unhurried

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
SHARDS = 4
FAKE_NODES = 10
OURS = {f"{part}__nodeSelector__type": "real" for part in ("manager", "daemon", "nats")}
WRITES_PER_POD = 3
PODS, AT_ONCE = 200, 40


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    return AuditLog(tmp_path_factory.mktemp("audit"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flotilla(tmp_path_factory: pytest.TempPathFactory, audit: AuditLog) -> AsyncIterator[Release]:
    """Install the chart with four shards."""
    folder = tmp_path_factory.mktemp("plane")
    async with real_cluster(folder, apiserver_flags=audit.flags, kubelet=unhurried(AT_ONCE)) as cluster:
        await cluster.plane.add_nodes(FAKE_NODES)
        async with release(cluster, services__cloneset__shards=SHARDS, **OURS) as installed:
            yield installed


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web(flotilla: Release) -> AsyncIterator[Rollout]:
    async with rollout(flotilla, PODS, AT_ONCE, nodes={"type": "kwok"}) as running:
        yield running


def spread(flotilla: Release, replicas: int, shards: int = SHARDS) -> bool:
    """Report whether all shards are held, as evenly as possible."""
    shares = Counter(flotilla.held("cloneset").values())
    return len(shares) == replicas and sum(shares.values()) == shards and max(shares.values()) == shards // replicas


def writes(audit: AuditLog) -> int:
    """Return how many writes of pods our services made since the last call."""
    return sum(write.object_ref.resource == "pods" and write.response_status.code < 300 for write in audit.ours())


async def test_services_are_scaled(flotilla: Release, web: Rollout, audit: AuditLog) -> None:
    """New replicas gain shards, removed ones release them, and no pod is written twice because of that."""

    async def scale() -> None:
        await flotilla.scale("cloneset", 4)
        await eventually(lambda: spread(flotilla, 4), 30)
        await asyncio.gather(flotilla.scale("watcher", 3), flotilla.scale("webhook", 3))
        await flotilla.scale("cloneset", 2)
        await eventually(lambda: spread(flotilla, 2), 30)
        await asyncio.gather(flotilla.scale("watcher", 2), flotilla.scale("webhook", 2))

    writes(audit)
    rollouts = await web.throughout(scale())
    assert writes(audit) == rollouts * PODS * WRITES_PER_POD
    await flotilla.healthy()


async def test_the_number_of_shards_changes(flotilla: Release, web: Rollout, audit: AuditLog) -> None:
    """In a rolling update: replicas of the new number stand by until the last old one has ended."""

    async def upgrade() -> None:
        await asyncio.to_thread(flotilla.helm.install, "upgrade", services__cloneset__shards=2, **OURS)
        await eventually(lambda: spread(flotilla, 2, shards=2), 60)

    writes(audit)
    rollouts = await web.throughout(upgrade())
    assert writes(audit) == rollouts * PODS * WRITES_PER_POD
    await flotilla.healthy()


async def test_everything_is_rolled(flotilla: Release, web: Rollout) -> None:
    """As in an upgrade of the release, every pod of ours is replaced."""
    before = {pod["metadata"]["uid"] for pod in flotilla.pods()}

    async def restart() -> None:
        await asyncio.to_thread(flotilla.kubectl, "rollout", "restart", *flotilla.workloads())
        await flotilla.rolled_out(*flotilla.workloads())

    await web.throughout(restart())
    await flotilla.healthy()
    assert not before & {pod["metadata"]["uid"] for pod in flotilla.pods()}


async def test_a_node_is_drained(flotilla: Release, web: Rollout) -> None:
    """The node of the bus: budgets allow the eviction of its pods, and everything runs elsewhere afterwards."""
    node = flotilla.pods("bus")[0]["spec"]["nodeName"]

    async def drain() -> None:
        words = ("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s")
        await asyncio.to_thread(flotilla.kubectl, *words, timeout=150)
        await flotilla.rolled_out(*flotilla.workloads())

    try:
        await web.throughout(drain())
        left = {pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in on_node(flotilla, node)}
        assert left == {"nodeagent"}
    finally:
        flotilla.kubectl("uncordon", node)
    await flotilla.healthy()


def on_node(flotilla: Release, node: str) -> list[dict[str, dict[str, dict[str, str]]]]:
    return [pod for pod in flotilla.pods() if pod["spec"]["nodeName"] == node]


async def test_the_bus_is_restarted(flotilla: Release, web: Rollout) -> None:
    async def restart() -> None:
        await asyncio.to_thread(flotilla.kubectl, "delete", "pod", "flotilla-bus-0", "--now")
        await flotilla.rolled_out("statefulset/flotilla-bus")

    await web.throughout(restart())
    await flotilla.healthy()


async def test_the_volume_of_the_bus_is_wiped(flotilla: Release, web: Rollout) -> None:
    """Streams are created and filled again, and `explain` has answers."""
    claim = json.loads(flotilla.kubectl("get", "pvc", "data-flotilla-bus-0", "-o", "json"))["metadata"]["uid"]

    async def wipe() -> None:
        await asyncio.to_thread(flotilla.kubectl, "delete", "pvc/data-flotilla-bus-0", "pod/flotilla-bus-0", "--now")
        await flotilla.rolled_out("statefulset/flotilla-bus")

    await web.throughout(wipe())
    await flotilla.healthy()
    assert json.loads(flotilla.kubectl("get", "pvc", "data-flotilla-bus-0", "-o", "json"))["metadata"]["uid"] != claim


async def test_all_webhooks_are_killed(flotilla: Release, web: Rollout) -> None:
    """A started rollout continues, and pods without a rule are created, while there is no webhook."""
    await web.begin()
    flotilla.kubectl("scale", "deploy/flotilla-webhook", "--replicas=0")
    flotilla.kubectl("delete", "pods", "-l", "app.kubernetes.io/component=webhook", "--force", "--grace-period=0")
    assert not flotilla.pods("webhook")
    await web.place.kubectl("run", "bystander", "--image=busybox", "--restart=Never", "--", "true")
    await web.place.kubectl("wait", "pod/bystander", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=30s")
    await web.finish()
    await flotilla.scale("webhook", 2)
    await eventually(lambda: bool(flotilla.cluster.kubectl("get", "clonesets.v1alpha1.apps.kruise.io", "-A")), 30)
    await web.begin()
    await web.end()
