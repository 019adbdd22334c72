"""Watchers that share the pods: a rollout ends in spite of faults of watchers and streams, with and without shards."""

import asyncio
import dataclasses
from collections.abc import Callable
from functools import partial

import msgspec
import pytest

from flotilla_common.api.keys import RUNTIME_CONTAINERS_META
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import POD
from flotilla_common.bus import subjects
from flotilla_common.bus.pod_shards import pod_shards
from flotilla_watcher.pod_sharing import PROBE_SECONDS, PROBES
from tests.simulation.loop import EPOCH
from tests.simulation.nodes.agent import NAME as AGENT
from tests.simulation.oracles.checker import check_history
from tests.simulation.scenarios.manifests import cloneset
from tests.simulation.world import SETTINGS, World, simulate

SHARDS, PODS = 3, 6
MERGE = "application/merge-patch+json"
SHARED = dataclasses.replace(SETTINGS, watcher_shards=SHARDS)
WORKERS = {"watcher": 2, "cloneset": 1}
WATCHERS = ("watcher-0", "watcher-1")
LASTS = SETTINGS.lease_duration + SETTINGS.bus_fallback_after + 5
"""Fake seconds until another watcher has taken over, or a service has fallen back, and of a rollout."""

MOMENT = 0.1
"""Fake seconds after the change, when its first writes are in flight."""

Hurt = Callable[[World], None]


def crash(watcher: str, world: World) -> None:
    """Kill a watcher for good."""
    world.processes[watcher].crash()


def pause(watcher: str, world: World) -> None:
    """Pause a watcher for longer than its leases last."""
    world.processes[watcher].pause()
    world.loop.call_later(2 * SETTINGS.lease_duration, world.processes[watcher].resume)


def lose(stream: str, world: World) -> None:
    """Remove the stream of a shard."""
    world.bus.lose_stream(stream)


def wipe(world: World) -> None:
    """Delete everything on the server."""
    world.bus.wipe()


def change(shards: int, world: World) -> None:
    """Give both watchers another number of shards, one after the other."""
    world.settings = dataclasses.replace(SHARED, watcher_shards=shards)
    for seconds, name in enumerate(WATCHERS, 1):
        world.processes[name].crash()
        world.loop.call_later(seconds, world.processes[name].start)


def downgrade(world: World) -> None:
    """Take the shards away from the apiserver, without any sign in watches."""
    world.server.has_shards = False


STREAMS = [subjects.kube_stream(shard).name for shard in pod_shards(SHARDS)]
FAULTS: dict[str, Hurt] = {
    **{
        f"{hurt.__name__} {name}": partial(hurt, name) for hurt in (crash, pause) for name in ("watcher-0", "watcher-1")
    },
    **{f"lose {name}": partial(lose, name) for name in STREAMS},
    **{f"change to {shards}": partial(change, shards) for shards in (1, 2, 5)},
    **{hurt.__name__: hurt for hurt in (wipe, downgrade)},
}


async def patch(world: World, spec: object) -> None:
    """Change the CloneSet's spec."""
    await world.api.patch(CLONE_SET, "shop", "web", msgspec.json.encode({"spec": spec}), MERGE)


def pods(world: World) -> list[str]:
    """Return the names of all pods."""
    return [name for _, name in world.server.store.table(POD).objects]


def images(world: World) -> list[str]:
    """Return the images of all pods."""
    found = (stored.document for stored in world.server.store.table(POD).objects.values())
    return [pod["spec"]["containers"][0]["image"] for pod in found]


async def rollout(world: World, hurt: Hurt) -> None:
    """Update in place, add replicas half-way, and disturb the watchers."""
    await world.api.create(CLONE_SET, "shop", msgspec.json.encode(cloneset(PODS)))
    await world.settle()
    world.loop.call_later(MOMENT, hurt, world)
    await patch(world, {"template": {"spec": {"containers": [{"name": "main", "image": "two"}]}}})
    await asyncio.sleep(0.4)
    await patch(world, {"replicas": PODS + 1})
    await asyncio.sleep(LASTS)
    assert images(world) == ["two"] * (PODS + 1)
    await patch(world, {"replicas": PODS + 2})
    await asyncio.sleep(LASTS)
    assert images(world) == ["two"] * (PODS + 2)
    assert not check_history(world.history.versions, epoch=EPOCH, lag=LASTS)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_rollout_survives(fault: str) -> None:
    simulate(lambda world: rollout(world, FAULTS[fault]), replicas=WORKERS, settings=SHARED)


def test_each_pod_is_in_one_stream_with_and_without_shards() -> None:
    async def story(world: World) -> None:
        await world.api.create(CLONE_SET, "shop", msgspec.json.encode(cloneset(PODS)))
        await world.settle()
        for has_shards in (True, False, True):
            world.server.has_shards = has_shards
            await asyncio.sleep((PROBES + 2) * PROBE_SECONDS)  # until the apiserver has been asked often enough
            shares = [published(world, stream) for stream in STREAMS]
            assert sorted(name for share in shares for name in share) == sorted(pods(world))
            assert (sum(map(bool, shares)) > 1) is has_shards
            assert {*STREAMS[1:]} & {*world.bus.streams} == ({*STREAMS[1:]} if has_shards else set())

    simulate(story, replicas=WORKERS, settings=SHARED)


def published(world: World, stream: str) -> list[str]:
    """Return the pods in a stream."""
    if stream not in world.bus.streams:
        return []
    held = world.bus.stream(stream).newest_of_each((">",), world.loop.time())
    return [subjects.object_key(one.subject)[1] for one in held if subjects.OP in one.headers]


def test_agents_get_the_pods_of_all_shards() -> None:
    """An agent reports the containers of each pod that it has a copy of."""

    async def story(world: World) -> None:
        await world.api.create(CLONE_SET, "shop", msgspec.json.encode(cloneset(PODS)))
        await world.settle()
        assert reported(world) == [True] * PODS
        for number, shards in enumerate((2, 1, 4), 1):
            change(shards, world)
            await asyncio.sleep(LASTS)
            await world.ready()
            await patch(world, {"replicas": PODS + number})
            await world.settle()
            assert reported(world) == [True] * (PODS + number)

    simulate(story, replicas=WORKERS | {"jobs": 1, AGENT: 3}, settings=SHARED)


def reported(world: World) -> list[bool]:
    """Return for each pod whether the agent of its node has reported its containers."""
    found = (stored.document for stored in world.server.store.table(POD).objects.values())
    return [RUNTIME_CONTAINERS_META in pod["metadata"].get("annotations", {}) for pod in found]
