"""One resource's watch from acquiring its lease to losing it."""

import asyncio
from collections.abc import Callable
from typing import cast

import msgspec
import pytest

from flotilla_common.api.kinds.resourcedistribution.types import RESOURCE_DISTRIBUTION
from flotilla_common.api.resources import POD, Resource
from flotilla_common.api.uidranges import EVERY_UID, UidRange
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus
from flotilla_common.bus.pod_shards import pod_shard
from flotilla_common.clock import Clock, SystemEntropy
from flotilla_watcher.node_copies import NodeCopies
from flotilla_watcher.pod_sharing import AnotherNumber, Sharing, WholeResource
from flotilla_watcher.resource_watch import GUARD_SECONDS, MARKER_BEATS, PAUSE_SECONDS, ResourceWatch
from tests.simulation.loop import SimulatedClock, SimulatedLoop, run
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi


class Publishing:
    """One running watch; `watching` is set whenever it reports that it is healthy."""

    def __init__(
        self,
        fence: Callable[[], bool],
        resource: Resource = POD,
        *objects: bytes,
        clock: Clock | None = None,
        bus: FakeBus | None = None,
        sharing: Sharing | None = None,
    ) -> None:
        self.bus = bus or FakeBus()
        self.watching = asyncio.Event()
        self.copies: dict[Resource, NodeCopies] = {}
        self.api = FakeApi({resource: map(msgspec.json.decode, objects)})
        watch = ResourceWatch(
            api=self.api.api,
            bus=cast("Bus", self.bus),
            clock=clock or FakeClock(),
            entropy=SystemEntropy(),
            resource=resource,
            max_payload=1 << 20,
            fence=fence,
            report=lambda trouble: None if trouble else self.watching.set(),
            copies=self.copies,
            sharing=sharing or WholeResource(),
        )
        self.task = asyncio.create_task(watch.run())

    async def works(self) -> None:
        self.watching.clear()
        async with asyncio.timeout(5):
            await self.watching.wait()


async def test_a_watch_that_loses_its_lease_while_it_is_cancelled_ends() -> None:
    held = True

    def fence() -> bool:
        if not held:
            publishing.task.cancel()  # the holder of the leases notices at the same moment
        return held

    publishing = Publishing(fence)
    await publishing.works()
    held = False
    await asyncio.wait([publishing.task], timeout=1)
    assert publishing.task.done()
    assert publishing.task.cancelled()


async def test_a_wiped_bus_is_filled_again_and_again() -> None:
    publishing = Publishing(lambda: True)
    await publishing.works()
    for _ in range(3):
        publishing.bus.wipe()
        await publishing.works()
    publishing.task.cancel()
    await asyncio.wait([publishing.task], timeout=1)
    assert publishing.task.cancelled()


def test_a_wiped_bus_is_filled_before_the_next_marker() -> None:
    """Nothing is published meanwhile, and the marker that would find it was just repeated."""
    marker = GUARD_SECONDS * MARKER_BEATS

    async def main(loop: SimulatedLoop) -> None:
        publishing = Publishing(lambda: True, clock=SimulatedClock(loop))
        await asyncio.sleep(marker + 0.5)
        publishing.bus.wipe()
        await asyncio.sleep(PAUSE_SECONDS + 0.5)
        assert publishing.bus.streams
        assert loop.time() < 2 * marker

    run(main)


@pytest.mark.parametrize(("resource", "withheld"), [(RESOURCE_DISTRIBUTION, True), (POD, False)])
async def test_what_may_hold_secrets_is_only_named(resource: Resource, withheld: bool) -> None:
    metadata = {"name": "a", "namespace": "", "uid": "u", "resourceVersion": "1", "annotations": {"last": "secret"}}
    item = msgspec.json.encode({"metadata": metadata, "spec": {"resource": {"data": {"k": "secret"}}}})
    publishing = Publishing(lambda: True, resource, item)
    await publishing.works()
    (message,) = (
        one for stream in publishing.bus.streams.values() for one in stream.messages.values() if one.headers.get("op")
    )
    assert (b"secret" in message.data, "withheld" in message.headers) == (not withheld, withheld)
    publishing.task.cancel()
    await asyncio.wait([publishing.task], timeout=1)


class Fixed:
    """A range that the test chooses; `change` ends it."""

    def __init__(self, uids: UidRange, line: str = "") -> None:
        self.uids, self.line = uids, line
        self.change = asyncio.Event()

    async def choose(self) -> UidRange:
        return self.uids

    async def watch(self, uids: UidRange) -> None:
        await self.change.wait()
        self.change.clear()
        raise AnotherNumber("by the test")


def uid(name: str) -> str:
    """Return the uid of a pod; the first letters change the hash most."""
    return f"{name}-{name}-0123456789"


PODS = [
    msgspec.json.encode({"metadata": {"name": name, "namespace": "shop", "uid": uid(name), "resourceVersion": "1"}})
    for name in "abcdefgh"
]


def published(bus: FakeBus, index: int) -> set[str]:
    """Return the names of the pods in the stream of a shard."""
    held = bus.streams[subjects.kube_stream(pod_shard(index)).name].messages.values()
    return {subjects.object_key(one.subject)[1] for one in held if one.headers.get("op") == "ADDED"}


def marker(bus: FakeBus, index: int, of: str = "kube") -> subjects.Marker:
    shard = pod_shard(index)
    names = subjects.kube_stream(shard).name, subjects.kube_marker(shard)
    if of == "node":
        names = subjects.node_stream(shard).name, subjects.node_marker(shard)
    return msgspec.json.decode(bus.streams[names[0]].messages[names[1]].data, type=subjects.Marker)


async def run_for_both(bus: FakeBus, *shares: Fixed) -> list[Publishing]:
    running: list[Publishing] = []
    for share in shares:
        one = Publishing(lambda: True, pod_shard(share.uids.index), *PODS, bus=bus, sharing=share)
        running.append(one)
        await one.works()
        assert marker(bus, share.uids.index).shard_count == share.uids.count
    return running


async def end(running: list[Publishing]) -> None:
    for one in running:
        one.task.cancel()
    await asyncio.wait([one.task for one in running], timeout=1)


async def test_two_watchers_publish_each_pod_once() -> None:
    bus = FakeBus()
    running = await run_for_both(bus, Fixed(UidRange(0, 2)), Fixed(UidRange(1, 2), "7"))
    assert published(bus, 0) | published(bus, 1) == set("abcdefgh")
    assert not published(bus, 0) & published(bus, 1)
    assert published(bus, 1) == {name for name in "abcdefgh" if UidRange(1, 2).covers(uid(name))}
    for index in range(2):
        assert (marker(bus, index).state, marker(bus, index).complete) == (subjects.PART, True)
        assert marker(bus, index, "node").shard_count == 2
    assert subjects.line_of(marker(bus, 1).epoch) == "7", "a stream that is new begins in the line of the first one"
    await end(running)


@pytest.mark.parametrize("after", [EVERY_UID, UidRange(0, 3)])
async def test_another_range_has_another_stream_without_tombstones(after: UidRange) -> None:
    """A follower would take them for deletions of what is in other streams now."""
    bus, share = FakeBus(), Fixed(UidRange(0, 2))
    (running,) = await run_for_both(bus, share)
    name = subjects.kube_stream(POD).name
    held, before = bus.streams[name], marker(bus, 0)
    msg = msgspec.structs.replace(before, epoch="4.b")
    await bus.publish(subjects.kube_marker(POD), msgspec.json.encode(msg), {subjects.EPOCH: "4.b"})
    share.uids = after
    share.change.set()
    await running.works()
    assert bus.streams[name] is not held
    assert {one.headers.get("op") for one in bus.streams[name].messages.values()} == {"ADDED", None}
    assert published(bus, 0) == {one for one in "abcdefgh" if after.covers(uid(one))}
    assert subjects.line_of(marker(bus, 0).epoch) == "4", "the line of versions goes on"
    await end([running])


async def test_the_same_range_keeps_its_stream() -> None:
    bus, share = FakeBus(), Fixed(UidRange(0, 2))
    (running,) = await run_for_both(bus, share)
    held = dict(bus.streams)
    share.change.set()
    await running.works()
    assert all(bus.streams[name] is stream for name, stream in held.items())
    await end([running])
