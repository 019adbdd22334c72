"""What a second replica of the CloneSets' service brings: plans a second, and memory for pods (docs/performance.md).

Planning alone: the stand-in (`played/`) answers at once, and the played changes need no writes. NATS, watcher and the
stand-in need part of the two cores that both replicas would need. So plans are counted for each second of CPU time of
the replicas: that is what one with a core of its own plans in a second. Plans by the clock are shown beside it.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from tests.perf.limits import at_least, within
from tests.perf.played.population import Sizes
from tests.perf.played.stage import Stage, stage

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]

SHARDS = 8
PODS_EACH = 50
SIZES = Sizes(sets=200, pods_each=PODS_EACH, nodes=500)
PLANS = "flotilla_plan_seconds_count"
PODS = 'flotilla_mirror_objects{resource="core.pods"}'

OFFERED = 1000
"""Changes a second, each of another CloneSet than the last: a plan for each, on less than two cores with everything."""

WARM_SECONDS, MEASURED_SECONDS = 2.0, 15.0
SETTLED_SECONDS = 5.0


class Planned(msgspec.Struct, frozen=True):
    """Plans of all replicas during a time, and the cores that each process had."""

    plans_per_second: float
    cores: dict[str, float]

    @property
    def capacity(self) -> float:
        """Return the plans a second of all replicas if each has a core of its own."""
        used = [cores for name, cores in self.cores.items() if name.startswith("cloneset")]
        return len(used) * self.plans_per_second / sum(used)


@asynccontextmanager
async def replicas(folder: Path, names: Sequence[str], sizes: Sizes = SIZES) -> AsyncGenerator[Stage]:
    """Run the watcher and replicas of the CloneSets' service that share the work."""
    async with stage(folder, sizes, services=("watcher",)) as played:
        await played.cold_start()
        for name in names:
            await start(played, name)
        await played.wait(lambda: pods(played) == sizes.pods and is_shared(played))
        await asyncio.sleep(SETTLED_SECONDS)
        yield played


async def start(played: Stage, name: str) -> None:
    await played.flotilla.start("cloneset", replica=name, flags=[f"--shards={SHARDS}"], wait=False)


def members(played: Stage) -> list[str]:
    return [name for name in played.flotilla.members if name.startswith("cloneset")]


def pods(played: Stage) -> int:
    """Return the pods in the mirrors of all replicas."""
    return int(sum(played.flotilla.members[name].metric(PODS) for name in members(played)))


def is_shared(played: Stage) -> bool:
    """Report whether each replica holds as many shards as the others."""
    holders = played.holders("cloneset")
    return len(holders) == len(members(played)) and set(holders.values()) == {SHARDS // len(holders)}


async def planned(played: Stage) -> Planned:
    """Have pods change, and count plans."""
    names = members(played)

    def counted() -> float:
        return sum(played.flotilla.members[name].metric(PLANS) for name in names)

    changing = asyncio.create_task(played.play("change", OFFERED, WARM_SECONDS + MEASURED_SECONDS))
    await asyncio.sleep(WARM_SECONDS)
    started, before, cpu = time.monotonic(), counted(), played.cpu()
    await asyncio.sleep(MEASURED_SECONDS - 1)
    seconds, plans = time.monotonic() - started, counted() - before
    cores = {name: round((used - cpu[name]) / seconds, 3) for name, used in played.cpu().items()}
    await changing
    found = Planned(plans / seconds, cores)
    print(f"\n{found}, with a core for each replica {found.capacity:.0f}", end="")
    return found


class Shared(msgspec.Struct, frozen=True):
    """One replica, then two."""

    one: Planned
    two: Planned
    memory: float  # MiB of one
    memories: list[float]  # MiB of each of two
    few: float  # MiB of one with a pod of each CloneSet: what has nothing to do with their number


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    async with replicas(tmp_path_factory.mktemp("few"), ["a"], Sizes(SIZES.sets, 1, SIZES.nodes)) as played:
        few = played.memory()["cloneset-a"]
    async with replicas(tmp_path_factory.mktemp("one"), ["a"]) as played:
        memory = played.memory()["cloneset-a"]
        one = await planned(played)
    async with replicas(tmp_path_factory.mktemp("two"), ["a", "b"]) as played:
        memories = [played.memory()[name] for name in members(played)]
        two = await planned(played)
    found = Shared(one, two, memory, memories, few)
    print(f"\nMiB with few pods {few:.1f}, of one {memory:.1f}, of two {memories}", end="")
    return found


async def test_two_replicas_plan_almost_twice_as_much(shared: Shared) -> None:
    at_least("played_shards_ratio", shared.two.capacity / shared.one.capacity)


async def test_each_of_two_replicas_has_half_of_the_pods(shared: Shared) -> None:
    of_one = shared.memory - shared.few
    within("played_shards_memory", max(memory - shared.few for memory in shared.memories) / of_one)
