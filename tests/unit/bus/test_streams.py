"""Streams that are kept in existence, in simulated time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from flotilla_common.bus.interface import Bus, BusError, StreamSpec
from flotilla_common.bus.streams import CHECK_SECONDS, RETRY_SECONDS, keep_streams
from tests.simulation.loop import SimulatedLoop, run
from tests.support.fake_bus import FakeBus

SPECS = [StreamSpec(name=name, subjects=(f"{name}.>",), last_value=False) for name in ("act", "why")]
NAMES = {"act", "why"}
MOMENT = 0.1


class RefusingBus(FakeBus):
    """Refuses to create streams for a while."""

    refuses = False

    async def ensure_stream(self, spec: StreamSpec) -> None:
        if self.refuses:
            raise BusError("no space left")
        await super().ensure_stream(spec)


def while_kept(story: Callable[[RefusingBus], Awaitable[None]], *, refuses: bool = False) -> None:
    """Play a story on a bus whose streams are kept."""

    async def main(loop: SimulatedLoop) -> None:
        bus = RefusingBus()
        bus.refuses = refuses
        keeping = loop.create_task(keep_streams(cast("Bus", bus), SPECS))
        await asyncio.sleep(MOMENT)
        await story(bus)
        keeping.cancel()

    run(main)


def test_streams_are_created_again_as_soon_as_a_wiped_bus_is_back() -> None:
    async def story(bus: RefusingBus) -> None:
        assert set(bus.streams) == NAMES
        bus.wipe()
        await asyncio.sleep(MOMENT)
        assert set(bus.streams) == NAMES

    while_kept(story)


def test_a_stream_that_somebody_removed_is_created_again() -> None:
    async def story(bus: RefusingBus) -> None:
        del bus.streams["why"]
        await asyncio.sleep(CHECK_SECONDS)
        assert set(bus.streams) == NAMES

    while_kept(story)


def test_what_was_refused_is_tried_again_soon() -> None:
    async def story(bus: RefusingBus) -> None:
        assert not bus.streams
        bus.refuses = False
        await asyncio.sleep(RETRY_SECONDS)
        assert set(bus.streams) == NAMES

    while_kept(story, refuses=True)
