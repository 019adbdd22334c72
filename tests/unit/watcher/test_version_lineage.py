"""Lines of versions: the watcher's reaction to an etcd restored from a backup."""

import asyncio
from typing import cast

import msgspec
import pytest

from flotilla_common.api.resources import NODE, POD
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus
from flotilla_common.clock import SystemEntropy
from flotilla_common.kube.interface import Api
from flotilla_common.mirror.table import VersionsWentBack
from flotilla_watcher.resource_watch import ResourceWatch
from flotilla_watcher.version_lineage import VersionLineage, begin_lineage, follow_lineage
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi


class Bench:
    def __init__(self) -> None:
        self.bus = FakeBus()

    async def publish(self, version: int, *, wipe: bool = False) -> None:
        """Publish the existing objects as of the version with a new watch; then, if asked, again on a wiped bus."""
        marked = asyncio.Event()
        watch = ResourceWatch(
            api=cast("Api", FakeApi(version=version)),
            bus=cast("Bus", self.bus),
            clock=FakeClock(),
            entropy=SystemEntropy(),
            resource=POD,
            max_payload=1 << 20,
            fence=lambda: True,
            report=lambda trouble: None if trouble else marked.set(),
            copies={},
        )
        running, complete = asyncio.create_task(watch.run()), asyncio.create_task(marked.wait())
        async with asyncio.timeout(5):
            await asyncio.wait([running, complete], return_when=asyncio.FIRST_COMPLETED)
            if wipe:
                marked.clear()
                self.bus.wipe()
                await marked.wait()
        for task in (running, complete):
            task.cancel()
        if not marked.is_set():
            await running

    async def line(self) -> VersionLineage | None:
        return await follow_lineage(cast("Bus", self.bus), POD)

    async def begin(self) -> None:
        await begin_lineage(cast("Bus", self.bus), SystemEntropy(), [NODE, POD])

    async def say(self, version: int) -> None:
        headers = {subjects.EPOCH: subjects.epoch("0", "x"), subjects.RV: str(version)}
        await self.bus.publish(subjects.kube(POD, "ns", "a"), b"", headers)


async def test_a_stream_tells_how_far_its_line_goes() -> None:
    bench = Bench()
    assert await bench.line() is None
    await bench.publish(10)
    assert await bench.line() == VersionLineage("0", 10)
    await bench.say(17)
    assert await bench.line() == VersionLineage("0", 17)


async def test_a_list_that_is_older_than_the_stream_ends_the_watch_until_another_line_begins() -> None:
    bench = Bench()
    await bench.publish(10)
    await bench.say(17)
    for _ in range(2):  # the marker of the failed LIST still contains it
        with pytest.raises(VersionsWentBack, match="pods were published up to resourceVersion 17, a LIST has 16"):
            await bench.publish(16)
    await bench.begin()  # the stream of the first resource does not exist: that hinders nothing
    assert await bench.line() == VersionLineage("1", 0)
    await bench.publish(16)
    assert await bench.line() == VersionLineage("1", 16)


async def test_a_line_outlives_a_wiped_bus() -> None:
    """Another one would end all services."""
    bench = Bench()
    await bench.publish(10)
    await bench.begin()
    await bench.publish(16, wipe=True)
    assert await bench.line() == VersionLineage("1", 16)


async def test_a_list_without_a_version_says_nothing() -> None:
    bench = Bench()
    await bench.publish(10)
    await bench.publish(0)
    assert await bench.line() == VersionLineage("0", 0)


async def test_epochs_name_their_line() -> None:
    bench = Bench()
    await bench.publish(10)
    marker = bench.bus.streams[subjects.kube_stream(POD).name].messages[subjects.kube_marker(POD)]
    assert subjects.line_of(msgspec.json.decode(marker.data, type=subjects.Marker).epoch) == subjects.FIRST_LINE
