"""A rollout ends in spite of any fault of the bus in its middle, and no rule is broken on the way.

Every fault of a connection, a consumer, a stream and the server is injected at three moments of the same rollout:
before the change is known, while its first writes are in flight, and between two of its steps.
"""

import asyncio
from collections.abc import Callable
from functools import partial

import msgspec
import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import CLAIM, POD, REVISION
from flotilla_common.bus import subjects
from tests.simulation.loop import EPOCH
from tests.simulation.oracles.checker import check_history
from tests.simulation.scenarios.manifests import cloneset
from tests.simulation.world import SETTINGS, World, simulate

SERVICE, WATCHER = "cloneset-0", "watcher-0"
MERGE = "application/merge-patch+json"
CATCH_UP_SECONDS = SETTINGS.bus_fallback_after + 5
"""Fake seconds until a service falls back to the apiserver, and of a rollout."""

Hurt = Callable[[World], None]


def stall(stream: str, world: World) -> None:
    """Stall its consumer without a sign."""
    world.bus.stall(SERVICE, stream)


def silence(stream: str, world: World) -> None:
    """Its consumer is gone, heartbeats and all."""
    world.bus.stall(SERVICE, stream, noticed=True)


def lose(stream: str, world: World) -> None:
    """Remove the stream."""
    world.bus.lose_stream(stream)


def empty(stream: str, world: World) -> None:
    """Lose the messages of the stream, which stays the same one."""
    world.bus.empty_stream(stream)


def freeze(process: str, world: World) -> None:
    """Stall its connection for longer than any timeout."""
    connection = world.processes[process].bus.connection
    connection.freeze()
    world.loop.call_later(20, connection.thaw)


def drop(process: str, world: World) -> None:
    """Its connection breaks."""
    world.processes[process].bus.connection.drop()


def sleep(process: str, world: World) -> None:
    """Pause the process for longer than a follow may be away."""
    world.processes[process].pause()
    world.loop.call_later(70, world.processes[process].resume)


def pause(world: World) -> None:
    """Pause the server."""
    world.bus.pause()
    world.loop.call_later(20, world.bus.resume)


def kill(world: World) -> None:
    """Kill the server for good."""
    world.bus.kill()


def restart(world: World) -> None:
    """Kill the server for a while."""
    world.bus.kill()
    world.loop.call_later(20, world.bus.revive)


def wipe(world: World) -> None:
    """Delete everything on the server."""
    world.bus.wipe()


STREAMS = [subjects.kube_stream(resource).name for resource in (POD, CLONE_SET, REVISION, CLAIM)]
OUTAGES: dict[str, Hurt] = {
    **{f"{hurt.__name__} {name}": partial(hurt, name) for hurt in (stall, silence, lose, empty) for name in STREAMS},
    **{f"{hurt.__name__} {name}": partial(hurt, name) for hurt in (freeze, drop, sleep) for name in (SERVICE, WATCHER)},
    **{hurt.__name__: hurt for hurt in (pause, kill, restart, wipe)},
}
LONG = {f"sleep {SERVICE}": 70.0}
"""Outages during which the rollout cannot continue, with their length."""


async def patch(world: World, spec: object) -> None:
    """Change the CloneSet's spec."""
    await world.api.patch(CLONE_SET, "shop", "web", msgspec.json.encode({"spec": spec}), MERGE)


def images(world: World) -> list[str]:
    """Return the images of all pods."""
    pods = (stored.document for stored in world.server.store.table(POD).objects.values())
    return [pod["spec"]["containers"][0]["image"] for pod in pods]


async def rollout(world: World, hurt: Hurt, moment: float, lasts: float) -> None:
    """Update in place, add replicas half-way, and disturb the bus."""
    await world.api.create(CLONE_SET, "shop", msgspec.json.encode(cloneset(3)))
    await world.settle()
    world.loop.call_later(moment, hurt, world)
    await patch(world, {"template": {"spec": {"containers": [{"name": "main", "image": "two"}]}}})
    await asyncio.sleep(0.4)
    await patch(world, {"replicas": 4})
    await asyncio.sleep(lasts + CATCH_UP_SECONDS)
    assert images(world) == ["two"] * 4
    await asyncio.sleep(20)  # the bus is back, or will never be
    await patch(world, {"replicas": 5})
    await asyncio.sleep(CATCH_UP_SECONDS)
    assert images(world) == ["two"] * 5
    assert not check_history(world.history.versions, epoch=EPOCH, lag=lasts + CATCH_UP_SECONDS)


@pytest.mark.parametrize("moment", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("outage", OUTAGES)
def test_a_rollout_survives(outage: str, moment: float) -> None:
    simulate(lambda world: rollout(world, OUTAGES[outage], moment, LONG.get(outage, 0.0)))
