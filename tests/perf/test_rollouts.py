"""The figures of docs/performance.md, each against its limit in thresholds.toml.

One control plane serves all of them, one after the other, so nothing else runs while something is measured. The figures
are printed, whether they pass or not.
"""

import statistics
from collections.abc import AsyncIterator, Iterable
from typing import NamedTuple

import pytest
import pytest_asyncio

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from tests.perf.limits import within
from tests.perf.lives import OLD, Life, live
from tests.perf.rollouts import DEPLOYMENT, Bench, bench

THOUSAND = 1000
ROUNDS = 7
LARGE_ROUNDS = 3  # of a minute and a half each
PROBES = 60

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(3600)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    async with bench(tmp_path_factory.mktemp("perf")) as running:
        yield running


class Between(NamedTuple):
    """A life, and those of one CloneSet of a thousand pods right before and right after it."""

    life: Life
    before: Life
    after: Life

    def against_one(self, what: str) -> float:
        """Return the seconds of a step, as a multiple of the time for the one CloneSet."""
        return self.life.seconds[what] / statistics.mean((self.before.seconds[what], self.after.seconds[what]))


class Lives(NamedTuple):
    """All lives, in groups to compare."""

    one: list[Life]
    native: list[Between]
    many: list[Between]
    large: list[Between]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lives(site: Bench) -> Lives:
    """Run the lives to compare in turns, several times.

    The speed of a shared machine varies by a fifth within a minute. Every other life is that of one CloneSet of a
    thousand pods, so a steady change of speed does no harm.
    """
    found = Lives([await live(site, CLONE_SET, 1, THOUSAND)], [], [], [])
    turns = [
        (found.native, (DEPLOYMENT, 1, THOUSAND)),
        (found.many, (CLONE_SET, 50, THOUSAND // 50)),
    ] * ROUNDS + [(found.large, (CLONE_SET, 1, 4 * THOUSAND))] * LARGE_ROUNDS
    for group, shape in turns:
        life = await live(site, *shape)
        found.one.append(await live(site, CLONE_SET, 1, THOUSAND))
        group.append(Between(life, *found.one[-2:]))
    return found


def median(figures: Iterable[float]) -> float:
    """Print the figures and return their median."""
    each = list(figures)
    print("\neach:", *(f"{figure:.2f}" for figure in each), end="")
    return statistics.median(each)


async def test_resident_memory_idle(site: Bench) -> None:
    within("rss_idle_mib", max(member.rss_mib() for member in site.flotilla.members.values()))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def latencies(site: Bench) -> list[float]:
    """Return the milliseconds from a change of replicas to the first pod, sorted."""
    await site.create(CLONE_SET, "probe", 1, OLD)
    await site.until(lambda: site.pods.ready(OLD) == 1)
    await site.quiet()
    taken: list[float] = []
    async with site.changes() as changes:
        for replicas in range(2, PROBES + 2):
            taken.append(await site.reaction(changes, "probe", replicas) * 1000)
            await site.until(lambda wanted=replicas: site.pods.ready(OLD) == wanted)
            await site.quiet()
    await site.delete(CLONE_SET, "probe")
    await site.until(lambda: len(site.pods) == 0)
    return sorted(taken)


async def test_median_latency_from_event_to_first_write(latencies: list[float]) -> None:
    within("latency_p50_ms", statistics.median(latencies))


async def test_longest_latency_from_event_to_first_write(latencies: list[float]) -> None:
    within("latency_p99_ms", latencies[int(len(latencies) * 0.99)])


async def test_writes_per_pod(lives: Lives) -> None:
    within("writes_per_created_pod", max(life.pod_writes["create"] for life in lives.one))
    within("writes_per_updated_pod", max(life.pod_writes["update"] for life in lives.one))


@pytest.mark.parametrize("what", ["create", "update"])
async def test_against_a_deployment(lives: Lives, what: str) -> None:
    within(f"{what}_ratio", median(1 / native.against_one(what) for native in lives.native))


async def test_cpu_of_a_life(lives: Lives) -> None:
    within("cpu_seconds", median(sum(life.cpu.values()) for life in lives.one))


async def test_resident_memory_with_a_thousand_pods(lives: Lives) -> None:
    before_the_large = lives.one[: 2 * ROUNDS + 1]
    within("rss_thousand_mib", max(life.rss for life in before_the_large))


@pytest.mark.parametrize("what", ["create", "update"])
async def test_many_small_against_one_large(lives: Lives, what: str) -> None:
    within(f"many_small_{what}_ratio", median(many.against_one(what) for many in lives.many))


@pytest.mark.parametrize("what", ["create", "update"])
async def test_four_thousand_against_one_thousand(lives: Lives, what: str) -> None:
    within(f"four_thousand_{what}_ratio", median(large.against_one(what) / 4 for large in lives.large))
