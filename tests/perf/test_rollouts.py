"""The figures of docs/performance.md, each against its limit in thresholds.toml.

One control plane serves all of them, one after the other, so nothing else runs while something is measured. The figures
are printed, whether they pass or not.
"""

import asyncio
import statistics
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from flotilla_common.api.resources import CLONE_SET, Resource
from tests.perf.rollouts import DEPLOYMENT, Bench, bench

LIMITS = tomllib.loads((Path(__file__).parent / "thresholds.toml").read_text(encoding="utf-8"))
OLD, NEW = "nginx:alpine", "nginx:mainline"
THOUSAND = 1000
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
    """What the life of a thousand pods of one workload took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.cpu: dict[str, float] = {}
        self.pod_writes: dict[str, float] = {}
        self.rss = 0.0


async def live(site: Bench, resource: Resource, name: str, count: int) -> Life:
    """Create, update, scale in by half, delete."""
    life = Life()

    async def step(what: str, change: Awaitable[None], done: Callable[[], bool]) -> None:
        cpu, writes = site.cpu(), site.pod_writes()
        life.seconds[what] = await site.timed(change, done)
        life.cpu[what] = site.cpu() - cpu
        life.pod_writes[what] = (site.pod_writes() - writes) / count
        print(
            f"\n{resource.kind} {what} {count}: {life.seconds[what]:.1f} s, CPU {life.cpu[what]:.2f} s,"
            f" {life.pod_writes[what]:.3f} pod writes per pod"
        )

    await step("create", site.create(resource, name, count, OLD), lambda: site.pods.ready(OLD) == count)
    life.rss = max(member.rss_mib() for member in site.flotilla.members.values())
    await step("update", site.set_image(resource, name, NEW), lambda: site.pods.ready(NEW) == count)
    await step("scale in", site.merge(resource, name, {"replicas": count // 2}), lambda: len(site.pods) == count // 2)
    await step("delete", site.delete(resource, name), lambda: len(site.pods) == 0)
    return life


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def native(site: Bench) -> Life:
    return await live(site, DEPLOYMENT, "native", THOUSAND)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def thousand(site: Bench, native: Life) -> Life:
    return await live(site, CLONE_SET, "thousand", THOUSAND)


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


async def test_writes_per_pod(thousand: Life) -> None:
    within("writes_per_created_pod", thousand.pod_writes["create"])
    within("writes_per_updated_pod", thousand.pod_writes["update"])


async def test_create_against_a_deployment(thousand: Life, native: Life) -> None:
    within("create_ratio", thousand.seconds["create"] / native.seconds["create"])


async def test_update_against_a_deployment(thousand: Life, native: Life) -> None:
    within("update_ratio", thousand.seconds["update"] / native.seconds["update"])


async def test_cpu_of_a_life(thousand: Life) -> None:
    within("cpu_seconds", sum(thousand.cpu.values()))


async def test_resident_memory_with_a_thousand_pods(thousand: Life) -> None:
    within("rss_thousand_mib", thousand.rss)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def small(site: Bench, thousand: Life) -> dict[str, float]:
    """Seconds of fifty workloads of twenty pods, measured between two of a thousand."""
    names = [f"small-{index}" for index in range(50)]
    seconds: dict[str, float] = {}
    create = asyncio.gather(*(site.create(CLONE_SET, name, 20, OLD) for name in names))
    seconds["create"] = await site.timed(create, lambda: site.pods.ready(OLD) == THOUSAND)
    update = asyncio.gather(*(site.set_image(CLONE_SET, name, NEW) for name in names))
    seconds["update"] = await site.timed(update, lambda: site.pods.ready(NEW) == THOUSAND)
    for name in names:
        await site.delete(CLONE_SET, name)
    await site.until(lambda: len(site.pods) == 0)
    print(f"\n50 times 20: create {seconds['create']:.1f} s, update {seconds['update']:.1f} s")
    return seconds


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def twice(site: Bench, thousand: Life, small: dict[str, float]) -> dict[str, float]:
    """Seconds of a thousand pods, the mean of one before and one after the small ones: a single run of anything differs
    from the next by a tenth."""
    again = await live(site, CLONE_SET, "again", THOUSAND)
    return {what: (thousand.seconds[what] + again.seconds[what]) / 2 for what in ("create", "update")}


async def test_many_small_against_one_large(small: dict[str, float], twice: dict[str, float]) -> None:
    within("many_small_create_ratio", small["create"] / twice["create"])
    within("many_small_update_ratio", small["update"] / twice["update"])


async def test_four_thousand_against_one_thousand(site: Bench, twice: dict[str, float]) -> None:
    large = await live(site, CLONE_SET, "large", 4 * THOUSAND)
    within("four_thousand_create_ratio", large.seconds["create"] / 4 / twice["create"])
    within("four_thousand_update_ratio", large.seconds["update"] / 4 / twice["update"])
