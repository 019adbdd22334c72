"""The figures of docs/performance.md, each against its limit in thresholds.toml.

One control plane serves all of them, one after the other, so nothing else runs while something is measured. The figures
are printed, whether they pass or not.
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
from tests.perf.rollouts import DEPLOYMENT, Bench, bench

LIMITS = tomllib.loads((Path(__file__).parent / "thresholds.toml").read_text(encoding="utf-8"))
OLD, NEW = "nginx:alpine", "nginx:mainline"
THOUSAND = 1000
ROUNDS = 7
PROBES = 60

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
        self.seconds: dict[str, float] = {}
        self.cpu: dict[str, float] = {}
        self.pod_writes: dict[str, float] = {}
        self.rss = 0.0


async def live(site: Bench, resource: Resource, workloads: int, replicas: int) -> Life:
    """Create, update, scale in by half, delete."""
    life = Life()
    count = workloads * replicas
    names = [f"{resource.plural}-{replicas}-{index}" for index in range(workloads)]

    async def step(what: str, change: Callable[[str], Awaitable[None]], done: Callable[[], bool]) -> None:
        cpu, writes = site.cpu(), site.pod_writes()
        life.seconds[what] = await site.timed(asyncio.gather(*(change(name) for name in names)), done)
        life.cpu[what] = site.cpu() - cpu
        life.pod_writes[what] = (site.pod_writes() - writes) / count
        print(
            f"\n{resource.kind} {what} {workloads} x {replicas}: {life.seconds[what]:.1f} s,"
            f" CPU {life.cpu[what]:.2f} s, {life.pod_writes[what]:.3f} pod writes per pod"
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
    """A thousand pods of each kind, one right after the other."""

    native: Life
    one: Life
    many: Life


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rounds(site: Bench) -> list[Round]:
    """A shared machine is now faster and now slower, by a fifth and within a minute: what is compared runs side by side
    in time, and several times, every other time in reverse order. So a machine that slows down for long harms each of
    them as often as the others."""
    return [await round_of(site, backwards=bool(number % 2)) for number in range(ROUNDS)]


async def round_of(site: Bench, *, backwards: bool) -> Round:
    """The three right after one another: the one large CloneSet in the middle, beside both that it is compared with."""
    lives = {
        "native": (DEPLOYMENT, 1, THOUSAND),
        "one": (CLONE_SET, 1, THOUSAND),
        "many": (CLONE_SET, 50, THOUSAND // 50),
    }
    order = reversed(lives) if backwards else lives
    return Round(**{name: await live(site, *lives[name]) for name in order})


def median(figures: Iterable[float]) -> float:
    """The middle one of the rounds' figures, all of which are printed."""
    each = list(figures)
    print("\neach round:", *(f"{figure:.2f}" for figure in each), end="")
    return statistics.median(each)


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
    within("create_ratio", median(each.one.seconds["create"] / each.native.seconds["create"] for each in rounds))


async def test_update_against_a_deployment(rounds: list[Round]) -> None:
    within("update_ratio", median(each.one.seconds["update"] / each.native.seconds["update"] for each in rounds))


async def test_cpu_of_a_life(rounds: list[Round]) -> None:
    within("cpu_seconds", median(sum(each.one.cpu.values()) for each in rounds))


async def test_resident_memory_with_a_thousand_pods(rounds: list[Round]) -> None:
    within("rss_thousand_mib", max(each.one.rss for each in rounds))


@pytest.mark.parametrize("what", ["create", "update"])
async def test_many_small_against_one_large(rounds: list[Round], what: str) -> None:
    within(f"many_small_{what}_ratio", median(each.many.seconds[what] / each.one.seconds[what] for each in rounds))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def large(site: Bench, rounds: list[Round]) -> Life:
    return await live(site, CLONE_SET, 1, 4 * THOUSAND)


@pytest.mark.parametrize("what", ["create", "update"])
async def test_four_thousand_against_one_thousand(large: Life, rounds: list[Round], what: str) -> None:
    within(f"four_thousand_{what}_ratio", large.seconds[what] / 4 / median(each.one.seconds[what] for each in rounds))
