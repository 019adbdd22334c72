"""The figures of StatefulSets (docs/performance.md), each against its limit in thresholds.toml.

All services of the set run, as with `flotilla up`. What is compared runs side by side in time, several times; the
median counts.
"""

import statistics
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
import pytest_asyncio

from tests.perf.limits import within
from tests.perf.lives import Life, live
from tests.perf.rollouts import BUILT_IN_STATEFUL_SET, DEPLOYMENT, STATEFUL_SET, Bench, bench
from tests.support.fleet import SERVICES

PODS = 500
ROUNDS = 5

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(1800)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    async with bench(tmp_path_factory.mktemp("perf"), services=(*SERVICES, "jobs", "statefulset")) as running:
        yield running


class Round(NamedTuple):
    """Three lives, one right after the other."""

    native: Life
    ours: Life
    deployment: Life


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rounds(site: Bench) -> list[Round]:
    """Run the rounds; the built-in kind always updates one pod at a time, so only its creation is compared."""
    return [
        Round(
            native=await live(site, BUILT_IN_STATEFUL_SET, 1, PODS, updates=False),
            ours=await live(site, STATEFUL_SET, 1, PODS),
            deployment=await live(site, DEPLOYMENT, 1, PODS),
        )
        for _ in range(ROUNDS)
    ]


async def test_writes_per_pod(rounds: list[Round]) -> None:
    within("statefulset_writes_per_created_pod", max(one.ours.pod_writes["create"] for one in rounds))
    within("statefulset_writes_per_updated_pod", max(one.ours.pod_writes["update"] for one in rounds))


async def test_create_against_the_built_in_kind(rounds: list[Round]) -> None:
    ratios = [one.ours.seconds["create"] / one.native.seconds["create"] for one in rounds]
    within("statefulset_create_ratio", statistics.median(ratios))


async def test_update_against_a_deployment(rounds: list[Round]) -> None:
    ratios = [one.ours.seconds["update"] / one.deployment.seconds["update"] for one in rounds]
    within("statefulset_update_ratio", statistics.median(ratios))


async def test_cpu_of_a_life(rounds: list[Round]) -> None:
    within("statefulset_cpu_seconds", statistics.median(sum(one.ours.cpu.values()) for one in rounds))
