"""The figures of SidecarSets (docs/performance.md), each against its limit in thresholds.toml.

A CloneSet whose pods get a sidecar is held against the same one without. Both live one right after the other, several
times; the median counts.
"""

import statistics
from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from tests.perf.limits import within
from tests.perf.lives import OLD, Life, live
from tests.perf.rollouts import CLONE_SET, Bench, bench
from tests.support.fleet import SERVICES

PODS = 500
ROUNDS = 3
NAME = "clonesets-1"
SIDECAR_OLD, SIDECAR_NEW = "sidecar:v1", "sidecar:v2"

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(1800)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    everything = (*SERVICES, "jobs", "statefulset", "sidecar")
    async with bench(tmp_path_factory.mktemp("perf"), services=everything) as running:
        yield running


class Round(NamedTuple):
    """Two lives, one right after the other: of pods alone, and of pods with a sidecar whose image is updated."""

    alone: Life
    meshed: Life


def sidecar_set(workload: str) -> dict[str, object]:
    return {
        "apiVersion": SIDECAR_SET.api_version,
        "kind": SIDECAR_SET.kind,
        "metadata": {"name": "bench"},
        "spec": {
            "selector": {"matchLabels": {"workload": workload}},
            "containers": [{"name": "sidecar", "image": SIDECAR_OLD}],
            "updateStrategy": {"maxUnavailable": "100%"},
        },
    }


async def meshed_life(site: Bench) -> Life:
    """Create a workload with a SidecarSet, update the sidecars, delete it."""
    await site.quiet()
    name = "meshed"
    await site.api.create(SIDECAR_SET, "", msgspec.json.encode(sidecar_set(name)))
    life = Life()

    def ready(image: str) -> bool:
        return site.pods.ready(f"{OLD}, {image}") == PODS

    def image(container: str) -> dict[str, object]:
        return {"spec": {"containers": [{"name": "sidecar", "image": container}]}}

    await life.step(site, "create", PODS, site.create(CLONE_SET, name, PODS, OLD), lambda: ready(SIDECAR_OLD))
    change = site.merge_document(SIDECAR_SET, "", "bench", image(SIDECAR_NEW))
    await life.step(site, "update", PODS, change, lambda: ready(SIDECAR_NEW))
    await life.step(site, "delete", PODS, site.delete(CLONE_SET, name), lambda: len(site.pods) == 0)
    await site.api.delete(SIDECAR_SET, "", "bench")
    return life


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rounds(site: Bench) -> list[Round]:
    return [Round(await live(site, CLONE_SET, 1, PODS), await meshed_life(site)) for _ in range(ROUNDS)]


async def test_writes_per_pod(rounds: list[Round]) -> None:
    within("sidecarset_writes_per_created_pod", max(one.meshed.pod_writes["create"] for one in rounds))
    within("sidecarset_writes_per_updated_pod", max(one.meshed.pod_writes["update"] for one in rounds))


async def test_create_against_pods_alone(rounds: list[Round]) -> None:
    ratios = [one.meshed.seconds["create"] / one.alone.seconds["create"] for one in rounds]
    within("sidecarset_create_ratio", statistics.median(ratios))


async def test_update_against_the_cloneset_s_own(rounds: list[Round]) -> None:
    ratios = [one.meshed.seconds["update"] / one.alone.seconds["update"] for one in rounds]
    within("sidecarset_update_ratio", statistics.median(ratios))


async def test_cpu_of_a_life(rounds: list[Round]) -> None:
    within("sidecarset_cpu_seconds", statistics.median(sum(one.meshed.cpu.values()) for one in rounds))
