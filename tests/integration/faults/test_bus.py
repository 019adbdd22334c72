"""The bus is lost, emptied, or paused in the middle of a rollout: it is a cache and a wake-up, and no more."""

import asyncio

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import POD
from flotilla_common.bus.streams import CHECK_SECONDS
from flotilla_common.bus.subjects import ACT_STREAM, WHY_STREAM, kube_stream
from flotilla_common.clock import SystemClock
from tests.support.cluster import eventually
from tests.support.fleet import Fleet
from tests.support.scene import Rollout

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

PAUSE_SECONDS = 20.0


async def test_wiped(flotilla: Fleet, web: Rollout) -> None:
    await web.begin()
    await flotilla.wipe_bus()
    await web.end()
    await web.begin(part=0)
    await web.end()


RECORDS = [ACT_STREAM.name, WHY_STREAM.name]
"""Streams that no single process owns."""


@pytest.mark.parametrize(
    "streams", [[kube_stream(POD).name], [kube_stream(CLONE_SET).name], RECORDS], ids=["pods", "clonesets", "records"]
)
async def test_streams_deleted(flotilla: Fleet, web: Rollout, streams: list[str]) -> None:
    async with flotilla.bus() as bus:
        await web.begin()
        for stream in streams:
            await bus.request(f"$JS.API.STREAM.DELETE.{stream}", b"", timeout=5)
        await web.end()
        await web.begin(part=0)
        await web.end()
        async with asyncio.timeout(CHECK_SECONDS + 5):  # those of records are checked this often, others sooner
            for stream in streams:
                while await bus.stream_state(stream) is None:
                    await SystemClock().sleep(0.2)


async def test_dead_for_good(flotilla: Fleet, web: Rollout) -> None:
    """The services watch the apiserver by themselves, and return to the bus when it is back."""
    await web.begin()
    await flotilla.kill_bus()
    await web.finish()
    await web.begin(part=0)  # the whole of the next rollout goes without a bus
    await web.finish()
    watcher, service = flotilla.members["watcher"], flotilla.members["cloneset"]
    assert "watching the apiserver directly" in service.log()
    returns = service.log().count("reading from it again")
    await flotilla.start_bus()
    await eventually(lambda: service.log().count("reading from it again") >= returns + 5)
    await eventually(watcher.ready)
    await web.begin()
    await web.end()


async def test_started_without_a_bus(flotilla: Fleet, web: Rollout) -> None:
    await flotilla.kill_bus()
    await flotilla.restart("cloneset")
    await web.begin()
    await flotilla.start_bus()
    await web.end()


async def test_watcher_paused(flotilla: Fleet, web: Rollout) -> None:
    """It pauses for longer than its leases, and than the timeouts of its readers."""
    await web.begin()
    flotilla.pause("watcher")
    await SystemClock().sleep(PAUSE_SECONDS)
    flotilla.resume("watcher")
    await web.end()
