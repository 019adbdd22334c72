"""The figures of DaemonSets (docs/performance.md), each against its limit in thresholds.toml.

500 fake nodes, all services of the set. Ours and the built-in kind live one right after the other, several times; the
median counts.
"""

import statistics
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
import pytest_asyncio

from flotilla_common.api.resources import Resource
from tests.perf.limits import within
from tests.perf.lives import NEW, OLD, Life
from tests.perf.rollouts import BUILT_IN_DAEMON_SET, DAEMON_SET, Bench, bench
from tests.support.cluster import eventually
from tests.support.fleet import SERVICES

NODES = 500
ROUNDS = 3
EVERYTHING = (*SERVICES, "jobs", "statefulset", "sidecar", "daemonset")

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(1800)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    """Run all services at rest: every node has its NodeImage."""
    async with bench(tmp_path_factory.mktemp("perf"), nodes=NODES, services=EVERYTHING) as running:
        await eventually(lambda: len(running.cluster.read("nodeimages")["items"]) == NODES)
        yield running


class Round(NamedTuple):
    """Two lives, one right after the other."""

    native: Life
    ours: Life


async def live(site: Bench, resource: Resource, name: str) -> Life:
    """Create on every node, update, delete."""
    await site.quiet()
    print(f"\n{resource.api_version} {resource.kind}:")
    life, ready = Life(), site.pods.ready
    await life.step(site, "create", NODES, site.create(resource, name, NODES, OLD), lambda: ready(OLD) == NODES)
    await life.step(site, "update", NODES, site.set_image(resource, name, NEW), lambda: ready(NEW) == NODES)
    await life.step(site, "delete", NODES, site.delete(resource, name), lambda: len(site.pods) == 0)
    return life


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rounds(site: Bench) -> list[Round]:
    return [
        Round(await live(site, BUILT_IN_DAEMON_SET, "native"), await live(site, DAEMON_SET, "ours"))
        for _ in range(ROUNDS)
    ]


async def test_writes_per_pod(rounds: list[Round]) -> None:
    within("daemonset_writes_per_created_pod", max(one.ours.pod_writes["create"] for one in rounds))
    within("daemonset_writes_per_updated_pod", max(one.ours.pod_writes["update"] for one in rounds))


async def test_create_against_the_built_in_kind(rounds: list[Round]) -> None:
    ratios = [one.ours.seconds["create"] / one.native.seconds["create"] for one in rounds]
    within("daemonset_create_ratio", statistics.median(ratios))


async def test_update_against_the_built_in_rolling_update(rounds: list[Round]) -> None:
    ratios = [one.ours.seconds["update"] / one.native.seconds["update"] for one in rounds]
    within("daemonset_update_ratio", statistics.median(ratios))


async def test_cpu_of_a_life(rounds: list[Round]) -> None:
    within("daemonset_cpu_seconds", statistics.median(sum(one.ours.cpu.values()) for one in rounds))
