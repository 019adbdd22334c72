"""Processes die, pause or lose their data in the middle of a rollout: it ends right, and nothing is broken on the way.

The bus is a cache and a wake-up, and no more.
"""

import asyncio
import json
import random

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import POD
from flotilla_common.bus.streams import CHECK_SECONDS
from flotilla_common.bus.subjects import ACT_STREAM, WHY_STREAM, kube_stream
from flotilla_common.clock import SystemClock
from tests.support.cluster import eventually
from tests.support.fleet import SERVICES, Fleet
from tests.support.random_kills import kill_round, under_one_holder
from tests.support.scene import OLD, Rollout, Scene, cloneset

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

PAUSE_SECONDS = 20.0
STREAMS = [kube_stream(POD).name, kube_stream(CLONE_SET).name, ACT_STREAM.name, WHY_STREAM.name]
"""Streams of objects, which the watcher owns, and of records, which no single process owns."""


@pytest.mark.parametrize("service", ["watcher", "cloneset"])
async def test_a_service_is_killed(flotilla: Fleet, web: Rollout, service: str) -> None:
    await web.begin()
    assert not web.finished
    await flotilla.restart(service)
    await web.end()


@pytest.mark.parametrize("component", ["kube-apiserver", "etcd"])
async def test_a_part_of_the_control_plane_is_killed(flotilla: Fleet, web: Rollout, component: str) -> None:
    await web.begin()
    await flotilla.kill_component(component)
    await flotilla.repair_control_plane()
    await web.end()


async def test_everything_is_killed_at_once(flotilla: Fleet, web: Rollout) -> None:
    await web.begin()
    await flotilla.kill_everything(SERVICES)
    await web.end()


async def test_kills_at_random(flotilla: Fleet, web: Rollout) -> None:
    """The next process finishes or undoes what a killed one has begun: no more pods than allowed are not Ready."""
    async with under_one_holder(flotilla):
        most, killed = await kill_round(flotilla, web, random.Random(29))
    assert len(killed) > 3
    assert most <= web.most


async def test_the_bus_is_wiped(flotilla: Fleet, web: Rollout) -> None:
    await web.begin()
    await flotilla.wipe_bus()
    await web.end()
    await web.begin(part=0)
    await web.end()


async def test_streams_are_deleted(flotilla: Fleet, web: Rollout) -> None:
    async with flotilla.bus() as bus:
        await web.begin()
        for stream in STREAMS:
            await bus.request(f"$JS.API.STREAM.DELETE.{stream}", b"", timeout=5)
        await web.end()
        await web.begin(part=0)
        await web.end()
        async with asyncio.timeout(CHECK_SECONDS + 5):  # those of records are checked this often, others sooner
            for stream in STREAMS:
                while await bus.stream_state(stream) is None:
                    await SystemClock().sleep(0.2)


async def test_the_bus_is_dead_for_good(flotilla: Fleet, web: Rollout) -> None:
    """The services watch the apiserver by themselves, also one that starts meanwhile, and return to the bus."""
    await web.begin()
    await flotilla.kill_bus()
    await web.finish()
    assert "watching the apiserver directly" in flotilla.members["cloneset"].log()
    await flotilla.restart("cloneset")
    await web.begin()
    assert not web.finished
    watcher, service = flotilla.members["watcher"], flotilla.members["cloneset"]
    returns = service.log().count("reading from it again")
    await flotilla.start_bus()
    await web.end()
    await eventually(lambda: service.log().count("reading from it again") >= returns + 5)
    await eventually(watcher.ready)


async def test_the_watcher_is_paused(flotilla: Fleet, web: Rollout) -> None:
    """It pauses for longer than its leases, and than the timeouts of its readers."""
    await web.begin()
    flotilla.pause("watcher")
    await SystemClock().sleep(PAUSE_SECONDS)
    flotilla.resume("watcher")
    await web.end()


async def test_a_dead_webhook_stops_no_rollout(flotilla: Fleet, web: Rollout) -> None:
    await web.begin()
    flotilla.kill("webhook")
    await web.finish()
    refusal = await refused(web.place, "create", "-f", "-", stdin=json.dumps(cloneset("late", 1)))
    assert "failed calling webhook" in refusal
    assert "connection refused" in refusal
    listed = await web.place.kubectl("get", "clonesets.v1beta1.apps.kruise.io", "-o", "name")
    assert listed.split() == ["cloneset.apps.kruise.io/web"]
    # One object is read from etcd; a list may come from the apiserver's cache, converted before.
    assert "conversion webhook" in await refused(web.place, "get", "clonesets.v1alpha1.apps.kruise.io", "web")
    seen = web.place.seen
    pod = seen.of("web")[0].metadata.name
    await web.place.kubectl("delete", "pod", pod, "--wait=false")  # it is replaced: pods need no webhook
    await seen.until(lambda: pod not in seen.pods and web.finished, 60, "a replacement")
    await flotilla.start("webhook")
    await web.place.create(cloneset("late", 1))
    await web.place.settle("late", OLD, 1)
    await flotilla.healthy()


async def refused(place: Scene, *arguments: str, stdin: str = "") -> str:
    """Return kubectl's output for a command that must be refused."""
    with pytest.raises(AssertionError) as refusal:
        await place.kubectl(*arguments, stdin=stdin)
    return str(refusal.value)
