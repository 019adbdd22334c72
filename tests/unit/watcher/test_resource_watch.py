"""One resource's watch from its lease's gain to its loss."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import msgspec

from flotilla_common.api.resources import POD
from flotilla_common.bus.interface import Bus
from flotilla_common.clock import SystemEntropy
from flotilla_common.kube.interface import Api, Page, WatchEvent
from flotilla_watcher.resource_watch import ResourceWatch
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock


class QuietApi:
    """Nothing exists and nothing happens."""

    async def list(self, *_: object, **__: object) -> Page:
        return Page([], "1")

    async def watch(self, *_: object, **__: object) -> AsyncIterator[WatchEvent]:
        await asyncio.Event().wait()
        yield WatchEvent("", msgspec.Raw(b""))


async def test_a_watch_that_loses_its_lease_while_it_is_cancelled_ends() -> None:
    held, watching = True, asyncio.Event()

    def fence() -> bool:
        if not held:
            task.cancel()  # the holder of the leases notices at the same moment
        return held

    watch = ResourceWatch(
        api=cast("Api", QuietApi()),
        bus=cast("Bus", FakeBus()),
        clock=FakeClock(),
        entropy=SystemEntropy(),
        resource=POD,
        max_payload=1 << 20,
        fence=fence,
        report=lambda trouble: None if trouble else watching.set(),
    )
    task = asyncio.create_task(watch.run())
    await watching.wait()
    held = False
    await asyncio.wait([task], timeout=1)
    assert task.done()
    assert task.cancelled()
