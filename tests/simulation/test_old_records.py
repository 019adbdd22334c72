"""Whichever watcher holds the leases moves old decisions to the end of their stream, also after the other one died."""

from functools import partial

import msgspec
import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_watcher import app
from flotilla_watcher.old_records import CHECK_SECONDS, OldRecords
from tests.simulation.scenarios.manifests import cloneset
from tests.simulation.world import SETTINGS, World, simulate

MERGE = "application/merge-patch+json"
STREAM = subjects.WHY_STREAM.name
MOST_GAPS = 3


async def change_often(world: World, name: str) -> None:
    """Leave more gaps than allowed."""
    replicas, state = 1, world.bus.state(STREAM)
    while state is None or state.gaps <= MOST_GAPS:
        replicas += 1
        spec = {"spec": {"replicas": replicas}}
        await world.api.patch(CLONE_SET, "shop", name, msgspec.json.encode(spec), MERGE)
        await world.settle()
        state = world.bus.state(STREAM)


def last(world: World, name: str) -> Message:
    found = world.bus.newest(STREAM, subjects.why(CLONE_SET, "shop", name))
    assert found is not None
    return found


async def moved(world: World) -> Message:
    """Return the decision about `old`, after many about `busy`: it has moved and is otherwise the same."""
    before = last(world, "old")
    await change_often(world, "busy")
    await world.clock.sleep(CHECK_SECONDS + SETTINGS.lease_duration)
    after = last(world, "old")
    assert after.sequence > before.sequence
    assert (after.data, after.headers[subjects.AGAIN]) == (before.data, "true")
    return after


async def old_decisions(world: World) -> None:
    for name in ("old", "busy"):
        await world.api.create(CLONE_SET, "shop", msgspec.json.encode(cloneset(1, name=name)))
        await world.settle()
    await moved(world)
    for watcher in world.replicas("watcher"):
        watcher.crash()
        await moved(world)
        watcher.start()
        await world.ready()


def test_old_decisions_move(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "OldRecords", partial(OldRecords, most_gaps=MOST_GAPS))
    simulate(old_decisions, replicas={"watcher": 2, "cloneset": 1})
