"""The whole simulated world: one CloneSet's life, the same in every run, and failures of its processes."""

import asyncio
import hashlib
import subprocess
import sys

import msgspec
import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import LEASE, POD
from flotilla_common.control.plan import Json
from tests.simulation.history import History
from tests.simulation.scenarios.manifests import cloneset
from tests.simulation.world import Unsettled, World, simulate

MERGE = "application/merge-patch+json"


async def create(world: World, replicas: int = 3) -> None:
    """Create a CloneSet `web`."""
    await world.api.create(CLONE_SET, "shop", msgspec.json.encode(cloneset(replicas)))


async def change(world: World, **spec: object) -> None:
    """Change members of the CloneSet's spec."""
    await world.api.patch(CLONE_SET, "shop", "web", msgspec.json.encode({"spec": spec}), MERGE)


def images(world: World) -> list[str]:
    """Return the images of all pods, sorted."""
    pods: list[Json] = [stored.document for stored in world.server.store.table(POD).objects.values()]
    return sorted(pod["spec"]["containers"][0]["image"] for pod in pods)


def holder(world: World) -> str:
    """Return the holder of the cloneset service's lease."""
    lease = world.server.store.table(LEASE).objects["kruise-system", "flotilla-cloneset-0"].document
    return lease["spec"]["holderIdentity"]


async def life(world: World) -> History:
    """Create a CloneSet, update it in place, scale it in, and delete it; return the history."""
    await create(world)
    await world.settle()
    [before] = set(images(world))
    await change(world, template={"spec": {"containers": [{"name": "main", "image": "two"}]}})
    await world.settle()
    assert (before != "two", images(world)) == (True, ["two"] * 3)
    await change(world, replicas=1)
    await world.settle()
    assert images(world) == ["two"]
    await world.delete(CLONE_SET, "shop", "web")
    await world.settle()
    assert images(world) == []
    return world.history


def digest(seed: int, *, shuffle: bool) -> str:
    """Return a hash of one run's history."""
    history = simulate(life, seed=seed, shuffle=shuffle)
    return hashlib.sha256(msgspec.json.encode([history.versions, history.calls])).hexdigest()


@pytest.mark.parametrize("shuffle", [False, True], ids=["even", "shuffled"])
def test_the_same_seed_makes_the_same_history_byte_for_byte(shuffle: bool) -> None:
    assert digest(1, shuffle=shuffle) == digest(1, shuffle=shuffle) != digest(2, shuffle=shuffle)


def test_the_history_does_not_depend_on_the_hashes_of_strings() -> None:
    code = "from tests.unit.simulation.test_world import digest; print(digest(3, shuffle=True))"
    made = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert made == {digest(3, shuffle=True)}


@pytest.mark.parametrize("seed", range(5))
def test_whatever_comes_first_the_end_is_the_same(seed: int) -> None:
    simulate(life, seed=seed, shuffle=True)


def test_settling_has_a_deadline() -> None:
    async def body(world: World) -> None:
        world.loop.create_task(restless(world))
        with pytest.raises(Unsettled, match="still changing"):
            await world.settle(deadline=10)

    async def restless(world: World) -> None:
        await create(world)
        for replicas in range(100):
            await change(world, replicas=replicas % 2)
            await asyncio.sleep(1)

    simulate(body)


def test_a_standby_takes_over_when_the_leader_dies() -> None:
    async def body(world: World) -> None:
        first, second = (world.processes[name] for name in ("cloneset-0", "cloneset-1"))
        leader = first if holder(world) == first.identity else second
        await create(world)
        await asyncio.sleep(0.05)
        leader.crash()
        await world.settle()
        assert len(images(world)) == 3
        assert holder(world) not in ("", leader.identity)
        leader.start()
        await world.ready()
        await world.settle()
        assert holder(world) != leader.identity

    simulate(body, replicas={"watcher": 1, "cloneset": 2})


def test_a_leader_that_is_told_to_stop_hands_over_at_once() -> None:
    async def body(world: World) -> None:
        leader = world.processes[holder(world).rsplit("-", 2)[0]]
        before = world.loop.time()
        await leader.stop()
        assert (leader.alive, holder(world), world.failures) == (False, "", [])
        await create(world)
        await world.settle()
        assert world.loop.time() - before < 10
        assert len(images(world)) == 3

    simulate(body, replicas={"watcher": 1, "cloneset": 2})


def test_a_paused_leader_is_replaced_and_comes_back_as_a_standby() -> None:
    async def body(world: World) -> None:
        await create(world)
        await asyncio.sleep(0.05)
        leader = world.processes[holder(world).rsplit("-", 2)[0]]
        leader.pause()
        await world.settle()
        other = holder(world)
        assert other != leader.identity
        leader.resume()
        await change(world, replicas=5)
        await world.settle()
        assert (len(images(world)), holder(world)) == (5, other)

    simulate(body, replicas={"watcher": 1, "cloneset": 2})


def test_a_lone_leader_catches_up_with_what_happened_while_it_was_paused() -> None:
    async def body(world: World) -> None:
        await create(world)
        await world.settle()
        world.processes["cloneset-0"].pause()
        await change(world, replicas=5)
        await asyncio.sleep(20)
        world.processes["cloneset-0"].resume()
        await world.settle()
        assert len(images(world)) == 5

    simulate(body)


def test_everything_goes_on_while_the_bus_is_dead_and_when_it_was_wiped() -> None:
    async def body(world: World) -> None:
        await create(world)
        world.bus.kill()
        await world.settle(quiet=10)
        assert len(images(world)) == 3
        await change(world, replicas=4)
        await world.settle()
        world.bus.revive()
        world.bus.wipe()
        await world.settle(quiet=10)
        await change(world, replicas=2)
        await world.settle()
        assert len(images(world)) == 2

    simulate(body)


@pytest.mark.parametrize("hours", [-1, 1])
def test_wrong_clocks_do_not_matter(hours: int) -> None:
    simulate(life, replicas={"watcher": 2, "cloneset": 2}, skews={"cloneset-0": hours * 3600, "watcher-1": hours * 60})
