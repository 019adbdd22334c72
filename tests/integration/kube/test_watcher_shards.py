"""Watchers share the pods by shards of the apiserver, take over from each other, and change the number of shards."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.resources import POD
from flotilla_common.api.uidranges import UidRange
from flotilla_common.bus.pod_shards import pod_shards
from flotilla_common.bus.streams import last_marker
from flotilla_common.bus.subjects import kube_stream
from flotilla_common.clock import SystemClock
from flotilla_common.mirror.mirror import Mirror
from flotilla_common.mirror.table import Table
from flotilla_dev.cluster.access import admin
from flotilla_insight.installation.rbac import NAMESPACE
from flotilla_watcher.pod_sharing import UNSUPPORTED
from tests.support.audit import AuditLog, Write, on, said
from tests.support.cluster import Cluster, control_plane, eventually
from tests.support.fleet import Fleet, fleet
from tests.support.scene import NEW, OLD, cloneset, scene

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

PODS, FEW = 100, 20
FLAGS = ("--lease-duration=6", "--lease-retry-period=1")
SHARED = "--feature-gates=ShardedListAndWatch=true"
DIRECTLY = "watching the apiserver directly"


@asynccontextmanager
async def two_watchers(cluster: Cluster) -> AsyncIterator[Fleet]:
    """Run two watchers that share the pods, and the services of CloneSets."""
    async with fleet(cluster, services=(), flags=FLAGS) as flotilla:
        for replica in ("a", "b"):
            await flotilla.start("watcher", replica=replica, flags=["--watcher-shards=2"], wait=False)
        for service in ("cloneset", "webhook"):
            await flotilla.start(service, wait=False)
        for name in list(flotilla.members):
            await flotilla.ready(name)
        yield flotilla


@asynccontextmanager
async def mirrored(flotilla: Fleet) -> AsyncIterator[Table[Pod]]:
    """Mirror all pods from the bus for the time of the block."""
    async with admin(flotilla.cluster.kubeconfig, SystemClock()) as api, flotilla.bus() as bus:
        mirror = Mirror(api=api, bus=bus, clock=SystemClock(), fallback_after=120)
        table = mirror.add(POD, Pod)
        task = asyncio.create_task(mirror.run())
        try:
            await mirror.synced(60)
            yield table
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def published(flotilla: Fleet, replica: str) -> set[str]:
    """Return the shards that the replica has published pods of."""
    lines = flotilla.members[replica].metrics_text().splitlines()
    added = 'flotilla_watcher_events_total{op="ADDED",resource="core.'
    counts = {line.removeprefix(added).partition('"')[0]: float(line.split()[-1]) for line in lines if added in line}
    return {shard for shard, count in counts.items() if shard.startswith("pods") and count}


def holders(cluster: Cluster) -> set[str]:
    """Return the holders of the leases of both shards."""
    names = ("flotilla-watcher-pods.core", "flotilla-watcher-pods-1.core")
    leases = cluster.read("leases", "-n", NAMESPACE)["items"]
    return {one["spec"].get("holderIdentity", "") for one in leases if one["metadata"]["name"] in names} - {""}


def per_pod(writes: list[Write]) -> Counter[int]:
    """Count the pods by the number of their writes that took effect."""
    made = [write for write in on(writes, "pods") if write.response_status.code < 300]
    return Counter(Counter(write.object_ref.name for write in made).values())


def same(table: Table[Pod], cluster: Cluster) -> Callable[[], bool]:
    """Return a check that the table equals the pods of the apiserver."""

    def check() -> bool:
        items = cluster.read("pods", "-A")["items"]
        return {one.metadata.uid: one.metadata.resource_version for one in table} == {
            item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in items
        }

    return check


async def shares(flotilla: Fleet, count: int) -> list[int]:
    """Return the number of pods in each stream, once the markers of `count` shards are complete."""
    async with flotilla.bus() as bus, asyncio.timeout(60):
        while True:
            markers = [await last_marker(bus, shard) for shard in pod_shards(count)]
            if all(one is not None and one.complete and one.shard_count == count for one in markers):
                streams = [kube_stream(shard).name for shard in pod_shards(count)]
                return [len(await bus.stream_subjects(stream)) - 1 for stream in streams]
            await asyncio.sleep(0.1)


async def test_two_watchers_share_the_pods(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path)
    plane = control_plane(tmp_path / "plane", apiserver_flags=(*audit.flags, SHARED))
    async with (
        plane as cluster,
        two_watchers(cluster) as flotilla,
        mirrored(flotilla) as table,
        scene(flotilla) as place,
    ):
        await shares(flotilla, 2)
        await eventually(lambda: len(holders(cluster)) == 2)
        gone: list[str] = []
        table.listen(lambda old, new: gone.append(str(old)) if new is None else None)
        audit.ours()
        await place.create(cloneset("web", PODS, maxUnavailable="20%"))
        await place.settle("web", OLD, PODS)
        writes = audit.ours()
        assert per_pod(writes) == {2: PODS}, said(writes)
        assert published(flotilla, "watcher-a") | published(flotilla, "watcher-b") == {"pods", "pods-1"}
        assert not published(flotilla, "watcher-a") & published(flotilla, "watcher-b")
        halves = [sum(UidRange(k, 2).covers(one.metadata.uid) for one in table) for k in range(2)]
        await eventually(same(table, cluster))
        assert await shares(flotilla, 2) == halves
        assert min(halves) > PODS / 4

        await place.roll("web", NEW)
        await eventually(lambda: place.seen.ready("web", NEW) > PODS / 10)
        flotilla.kill("watcher-a")
        await place.settle("web", NEW, PODS)
        writes = audit.ours()
        assert per_pod(writes) == {3: PODS}, said(writes)
        assert published(flotilla, "watcher-b") == {"pods", "pods-1"}
        await eventually(same(table, cluster))

        for count in (3, 1):  # more and fewer shards, in the middle of a rollout
            image = f"nginx:{count}"
            await place.roll("web", image)
            await flotilla.start("watcher", replica=str(count), flags=[f"--watcher-shards={count}"], wait=False)
            flotilla.kill("watcher-b" if count == 3 else "watcher-3")
            await place.settle("web", image, PODS)
            assert sum(await shares(flotilla, count)) == len(table)
            writes = audit.ours()
            assert per_pod(writes) == {3: PODS}, said(writes)
            await eventually(same(table, cluster))
        assert gone == []
        await flotilla.healthy()
        assert DIRECTLY not in flotilla.members["cloneset"].log()
        await place.end()


async def test_without_the_feature_gate_one_watcher_publishes_all(tmp_path: Path) -> None:
    async with (
        control_plane(tmp_path) as cluster,
        two_watchers(cluster) as flotilla,
        mirrored(flotilla) as table,
        scene(flotilla) as place,
    ):
        await place.create(cloneset("web", FEW))
        await place.settle("web", OLD, FEW)
        await eventually(same(table, cluster))
        assert sum(await shares(flotilla, 1)) == len(table)
        (first,) = (name for name in ("watcher-a", "watcher-b") if published(flotilla, name))
        (other,) = {"watcher-a", "watcher-b"} - {first}
        assert published(flotilla, first) == {"pods"}
        assert UNSUPPORTED in flotilla.members[first].log()
        assert "core.pods-1 idle: " in flotilla.members[other].why_not_ready()
        await flotilla.healthy()
        await place.end()
