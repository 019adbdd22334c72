"""The figures of docs/performance.md, each against its limit in thresholds.toml.

One control plane serves all of them, one after the other, so nothing else runs while something is measured. Seconds
that are compared with seconds of another step are adjusted to the machine's speed in each (see `yardstick`). The
figures are printed, adjusted and not, whether they pass or not.
"""

import asyncio
import statistics
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from flotilla_common.api.resources import CLONE_SET, Resource
from flotilla_common.clock import SystemClock
from tests.perf.rollouts import DEPLOYMENT, Bench, bench

LIMITS = tomllib.loads((Path(__file__).parent / "thresholds.toml").read_text(encoding="utf-8"))
OLD, NEW = "nginx:alpine", "nginx:mainline"
THOUSAND = 1000
ROUNDS = 5
PROBES = 60
CLOCK = SystemClock()

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(1800)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    async with bench(tmp_path_factory.mktemp("perf")) as running:
        yield running


def within(figure: str, value: float) -> None:
    """Print a figure, and hold it against its limit."""
    print(f"\n{figure}: {value:.3f} (limit {LIMITS[figure]})")
    assert value <= LIMITS[figure]


class Life:
    """What the life of many pods took, step by step."""

    def __init__(self) -> None:
        self.clock: dict[str, float] = {}  # seconds
        self.seconds: dict[str, float] = {}  # the same, adjusted to the machine's speed
        self.cpu: dict[str, float] = {}
        self.pod_writes: dict[str, float] = {}
        self.rss = 0.0


async def live(site: Bench, resource: Resource, workloads: int, replicas: int) -> Life:
    """Create, update, scale in by half, delete."""
    life = Life()
    count = workloads * replicas
    names = [f"{resource.plural}-{replicas}-{index}" for index in range(workloads)]

    async def step(what: str, change: Callable[[str], Awaitable[None]], done: Callable[[], bool]) -> None:
        cpu, writes, started = site.cpu(), site.pod_writes(), CLOCK.monotonic()
        life.clock[what] = await site.timed(asyncio.gather(*(change(name) for name in names)), done)
        life.seconds[what] = site.yardstick.adjusted(life.clock[what], started)
        life.cpu[what] = site.cpu() - cpu
        life.pod_writes[what] = (site.pod_writes() - writes) / count
        print(
            f"\n{resource.kind} {what} {workloads} x {replicas}: {life.clock[what]:.1f} s,"
            f" adjusted {life.seconds[what]:.1f} s, CPU {life.cpu[what]:.2f} s,"
            f" {life.pod_writes[what]:.3f} pod writes per pod"
        )

    ready, half = site.pods.ready, replicas // 2
    await step("create", lambda name: site.create(resource, name, replicas, OLD), lambda: ready(OLD) == count)
    life.rss = max(member.rss_mib() for member in site.flotilla.members.values())
    await step("update", lambda name: site.set_image(resource, name, NEW), lambda: ready(NEW) == count)
    await step(
        "scale in",
        lambda name: site.merge(resource, name, {"replicas": half}),
        lambda: len(site.pods) == workloads * half,
    )
    await step("delete", lambda name: site.delete(resource, name), lambda: len(site.pods) == 0)
    return life


class Round(NamedTuple):
    """A thousand pods, five times, one right after the other."""

    native: Life
    one: Life
    many: Life


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rounds(site: Bench) -> list[Round]:
    """What is compared runs one right after the other, several times."""
    return [
        Round(
            native=await live(site, DEPLOYMENT, 1, THOUSAND),
            one=await live(site, CLONE_SET, 1, THOUSAND),
            many=await live(site, CLONE_SET, 50, THOUSAND // 50),
        )
        for _ in range(ROUNDS)
    ]


def median(figures: Iterable[float]) -> float:
    """The middle one of the rounds' figures, all of which are printed."""
    each = list(figures)
    print("\neach round:", *(f"{figure:.2f}" for figure in each), end="")
    return statistics.median(each)


def compared(what: str, lives: Iterable[tuple[Life, Life]]) -> float:
    """How many times as long the step took in the one life as in the other; the median of all pairs, adjusted."""
    pairs = list(lives)
    by_clock = statistics.median(one.clock[what] / other.clock[what] for one, other in pairs)
    ratio = median(one.seconds[what] / other.seconds[what] for one, other in pairs)
    print(f"\nmedian by the clock, not adjusted: {by_clock:.3f}", end="")
    return ratio


async def test_resident_memory_idle(site: Bench) -> None:
    within("rss_idle_mib", max(member.rss_mib() for member in site.flotilla.members.values()))


async def test_latency_from_event_to_first_write(site: Bench) -> None:
    await site.create(CLONE_SET, "probe", 1, OLD)
    await site.until(lambda: site.pods.ready(OLD) == 1)
    latencies: list[float] = []
    for replicas in range(2, PROBES + 2):
        latencies.append(await site.reaction("probe", replicas) * 1000)
        await site.until(lambda wanted=replicas: site.pods.ready(OLD) == wanted)
        await site.quiet()
    await site.delete(CLONE_SET, "probe")
    await site.until(lambda: len(site.pods) == 0)
    latencies.sort()
    within("latency_p50_ms", statistics.median(latencies))
    within("latency_p99_ms", latencies[int(len(latencies) * 0.99)])


async def test_writes_per_pod(rounds: list[Round]) -> None:
    within("writes_per_created_pod", max(each.one.pod_writes["create"] for each in rounds))
    within("writes_per_updated_pod", max(each.one.pod_writes["update"] for each in rounds))


async def test_create_against_a_deployment(rounds: list[Round]) -> None:
    within("create_ratio", compared("create", ((each.one, each.native) for each in rounds)))


async def test_update_against_a_deployment(rounds: list[Round]) -> None:
    within("update_ratio", compared("update", ((each.one, each.native) for each in rounds)))


async def test_cpu_of_a_life(rounds: list[Round]) -> None:
    within("cpu_seconds", median(sum(each.one.cpu.values()) for each in rounds))


async def test_resident_memory_with_a_thousand_pods(rounds: list[Round]) -> None:
    within("rss_thousand_mib", max(each.one.rss for each in rounds))


@pytest.mark.parametrize("what", ["create", "update"])
async def test_many_small_against_one_large(rounds: list[Round], what: str) -> None:
    within(f"many_small_{what}_ratio", compared(what, ((each.many, each.one) for each in rounds)))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def large(site: Bench, rounds: list[Round]) -> Life:
    return await live(site, CLONE_SET, 1, 4 * THOUSAND)


@pytest.mark.parametrize("what", ["create", "update"])
async def test_four_thousand_against_one_thousand(large: Life, rounds: list[Round], what: str) -> None:
    within(f"four_thousand_{what}_ratio", compared(what, ((large, each.one) for each in rounds)) / 4)
