"""One resource's watch from acquiring its lease to losing it."""

import asyncio
from collections.abc import Callable
from typing import cast

import msgspec
import pytest

from flotilla_common.api.kinds.resourcedistribution.types import RESOURCE_DISTRIBUTION
from flotilla_common.api.resources import POD, Resource
from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock, SystemEntropy
from flotilla_common.kube.interface import Api
from flotilla_watcher.node_copies import NodeCopies
from flotilla_watcher.resource_watch import GUARD_SECONDS, MARKER_BEATS, PAUSE_SECONDS, ResourceWatch
from tests.simulation.loop import SimulatedClock, SimulatedLoop, run
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi


class Publishing:
    """One running watch; `watching` is set whenever it reports that it is healthy."""

    def __init__(
        self, fence: Callable[[], bool], resource: Resource = POD, *objects: bytes, clock: Clock | None = None
    ) -> None:
        self.bus = FakeBus()
        self.watching = asyncio.Event()
        self.copies: dict[Resource, NodeCopies] = {}
        watch = ResourceWatch(
            api=cast("Api", FakeApi({resource: map(msgspec.json.decode, objects)})),
            bus=cast("Bus", self.bus),
            clock=clock or FakeClock(),
            entropy=SystemEntropy(),
            resource=resource,
            max_payload=1 << 20,
            fence=fence,
            report=lambda trouble: None if trouble else self.watching.set(),
            copies=self.copies,
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
