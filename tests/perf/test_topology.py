"""The figures of UnitedDeployments (docs/performance.md), each against its limit in thresholds.toml.

One with four subsets is held against one CloneSet of as many pods, several times; the median counts.
"""

import statistics
from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT
from tests.perf.limits import within
from tests.perf.lives import NEW, OLD, Life, live
from tests.perf.rollouts import ALL_AT_ONCE, CLONE_SET, NAMESPACE, Bench, bench, writes_in
from tests.support.fleet import SERVICES

PODS = 1000
SUBSETS = ("a", "b", "c", "d")
ROUNDS = 3
NAME = "united"

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(1800)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    async with bench(tmp_path_factory.mktemp("perf"), services=(*SERVICES, "topology")) as running:
        yield running


class Round(NamedTuple):
    """One CloneSet and one UnitedDeployment, one right after the other."""

    alone: Life
    united: Life
    child_writes: float  # of an update, by the topology service
    status_rate: float  # writes of the status per second of the update


def united_deployment(image: str) -> dict[str, object]:
    labels = {"app": "bench", "workload": NAME}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "nginx", "image": image}]}}
    template = {"selector": {"matchLabels": labels}, "template": pod, **ALL_AT_ONCE[CLONE_SET]}
    return {
        "apiVersion": UNITED_DEPLOYMENT.api_version,
        "kind": UNITED_DEPLOYMENT.kind,
        "metadata": {"name": NAME},
        "spec": {
            "replicas": PODS,
            "selector": {"matchLabels": labels},
            "template": {"cloneSetTemplate": {"metadata": {"labels": labels}, "spec": template}},
            "topology": {"subsets": [{"name": name} for name in SUBSETS]},
        },
    }


def writes(site: Bench, kind: str) -> float:
    """Return the topology service's writes of objects of a kind so far."""
    return writes_in(site.flotilla.members["topology"].metrics_text(), kind)


async def once(site: Bench) -> Round:
    alone = await live(site, CLONE_SET, 1, PODS)
    await site.quiet()
    life, ready = Life(), site.pods.ready
    body = msgspec.json.encode(united_deployment(OLD))
    create = site.api.create(UNITED_DEPLOYMENT, NAMESPACE, body)
    await life.step(site, "create", PODS, create, lambda: ready(OLD) == PODS)
    await site.quiet()
    children, statuses = writes(site, "CloneSet"), writes(site, "UnitedDeployment")
    spec: dict[str, object] = united_deployment(NEW)["spec"]  # type: ignore[assignment]
    change = site.merge(UNITED_DEPLOYMENT, NAME, {"template": spec["template"]})
    await life.step(site, "update", PODS, change, lambda: ready(NEW) == PODS)
    rate = (writes(site, "UnitedDeployment") - statuses) / life.seconds["update"]
    await site.quiet()
    children = writes(site, "CloneSet") - children
    print(f"\n{children:g} writes of children, {rate:.2f} of the status a second")
    await life.step(site, "delete", PODS, site.delete(UNITED_DEPLOYMENT, NAME), lambda: len(site.pods) == 0)
    return Round(alone, life, children, rate)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rounds(site: Bench) -> list[Round]:
    return [await once(site) for _ in range(ROUNDS)]


@pytest.mark.parametrize("what", ["create", "update"])
async def test_against_one_clone_set(rounds: list[Round], what: str) -> None:
    ratios = [one.united.seconds[what] / one.alone.seconds[what] for one in rounds]
    within(f"uniteddeployment_{what}_ratio", statistics.median(ratios))


async def test_writes_of_a_rollout(rounds: list[Round]) -> None:
    within("uniteddeployment_writes_per_subset", max(one.child_writes for one in rounds) / len(SUBSETS))
    within("uniteddeployment_status_writes_per_second", max(one.status_rate for one in rounds))
