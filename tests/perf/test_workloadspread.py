"""The cost of a WorkloadSpread in the path of pods (docs/performance.md).

Two replicas of the webhook handle a hundred creates per second of pods that share its places.
"""

import asyncio
import json
import re
import statistics
from collections import Counter
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.workloadspread.types import MATCHED, WORKLOAD_SPREAD
from flotilla_common.api.meta import metadata_of
from flotilla_common.api.resources import POD
from flotilla_common.clock import SystemClock
from tests.perf.limits import LIMITS, within
from tests.perf.rollouts import NAMESPACE, Bench, bench
from tests.perf.webhooks import CALLS, calls_within
from tests.support.balancer import balanced_webhooks
from tests.support.fleet import Member

PODS, PER_SECOND, TOGETHER = 2000, 100, 4
"""Pods come in groups, as controllers create them: the apiserver has a connection for each request under way, and only
several connections lead to both replicas."""

LIMITED = {"a": 700, "b": 800}
SOURCES = ("ahead", "lent", "book")

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    """Run the webhooks without services that create pods: the test acts as their controller."""
    async with (
        bench(tmp_path_factory.mktemp("perf"), services=("watcher", "topology")) as running,
        balanced_webhooks(running.flotilla, 2),
    ):
        yield running


def webhooks(site: Bench) -> list[Member]:
    return [one for one in site.flotilla.members.values() if one.name == "webhook"]


def calls(site: Bench, metric: str = CALLS) -> float:
    return sum(one.metric(metric) for one in webhooks(site))


async def status_writes(site: Bench) -> float:
    """Return the number of writes of the status so far, of all services, by the apiserver's count."""
    page = (await site.api.raw("GET", "/metrics")).decode()
    found = re.findall(r"^apiserver_request_total\{(.*)\} (\S+)$", page, re.MULTILINE)
    wanted = ('resource="workloadspreads"', 'subresource="status"')
    return sum(float(count) for labels, count in found if all(one in labels for one in wanted))


async def workload(site: Bench, name: str) -> str:
    """Create a CloneSet that makes no pods; its uid."""
    labels = {"app": name}
    container = {"name": "main", "image": "nginx:alpine"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": PODS, "selector": {"matchLabels": labels}, "template": template}
    document = {**CLONE_SET.type_meta, "metadata": {"name": name}, "spec": spec}
    return metadata_of(await site.api.create(CLONE_SET, NAMESPACE, msgspec.json.encode(document))).uid


def pod(workload: str, uid: str, number: int) -> bytes:
    owner = {**CLONE_SET.type_meta, "name": workload, "uid": uid, "controller": True}
    metadata = {"name": f"{workload}-{number}", "labels": {"app": workload}, "ownerReferences": [owner]}
    # They are not scheduled: the cost of a scheduler and kubelets is not the webhook's.
    spec = {"containers": [{"name": "main", "image": "nginx:alpine"}], "schedulerName": "nobody"}
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


async def creates(site: Bench, workload: str, uid: str, count: int) -> tuple[Counter[str], list[float]]:
    """Return how many pods each subset got, and the seconds of each create."""
    clock = SystemClock()
    begin = clock.monotonic() + 0.5

    async def create(number: int) -> tuple[str, float]:
        await clock.sleep(begin + number // TOGETHER * TOGETHER / PER_SECOND - clock.monotonic())
        started = clock.monotonic()
        stored = metadata_of(await site.api.create(POD, NAMESPACE, pod(workload, uid, number)))
        mark = json.loads(stored.annotations.get(MATCHED, "{}"))
        return mark.get("subset", ""), clock.monotonic() - started

    found = await asyncio.gather(*(create(number) for number in range(count)))
    return Counter(place for place, _ in found), [seconds for _, seconds in found]


async def test_places(site: Bench) -> None:
    spread, other = await workload(site, "web"), await workload(site, "other")
    document = {
        **WORKLOAD_SPREAD.type_meta,
        "metadata": {"name": "web"},
        "spec": {
            "targetRef": {**CLONE_SET.type_meta, "name": "web"},
            "subsets": [*({"name": name, "maxReplicas": limit} for name, limit in LIMITED.items()), {"name": "c"}],
        },
    }
    await site.api.create(WORKLOAD_SPREAD, NAMESPACE, msgspec.json.encode(document))
    probes = calls(site)
    places, seconds = await creates(site, "other", other, PODS // 10)
    assert (calls(site), places) == (probes, {"": PODS // 10})  # no call for pods of other workloads, not even here
    print_quantiles("outside of it", seconds)
    places, seconds = await creates(site, "web", spread, PODS)
    print_quantiles("that match it", seconds)
    for name, one in site.flotilla.members.items():
        print(f"{name}: {one.cpu_seconds():.1f} s of CPU")
    called = [one.metric(CALLS) for one in webhooks(site)]
    print(f"calls of each replica: {called}")
    print({source: calls(site, f'flotilla_webhook_places_total{{source="{source}"}}') for source in SOURCES})
    assert min(called) > PODS // 20
    assert places == {**LIMITED, "c": PODS - sum(LIMITED.values())}  # never too many, and no place is lost
    slow = LIMITS["webhook_p99_ms"] / 1000
    within("workloadspread_writes_per_place", await status_writes(site) / sum(LIMITED.values()))
    within("workloadspread_share_slower", 1 - (calls(site, calls_within(slow)) - probes) / (calls(site) - probes))


def print_quantiles(what: str, seconds: list[float]) -> None:
    cuts = statistics.quantiles(seconds, n=100)
    print(f"\ncreates {what}: p50 {cuts[49] * 1000:.1f} ms, p99 {cuts[98] * 1000:.1f} ms")
