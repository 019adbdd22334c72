"""The figures of BroadcastJobs and AdvancedCronJobs (docs/performance.md), each against its limit in thresholds.toml.

A thousand fake nodes, all services of the set. A BroadcastJob and a built-in DaemonSet live one right after the other,
several times; the median counts. Then five hundred AdvancedCronJobs have the same minute.
"""

import asyncio
import statistics
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.api.batch import Job
from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.resources import JOB, Resource
from flotilla_common.clock import SystemClock
from tests.perf.limits import within
from tests.perf.lives import OLD, Life
from tests.perf.rollouts import BUILT_IN_DAEMON_SET, NAMESPACE, Bench, bench, writes_in
from tests.support.cluster import eventually
from tests.support.fleet import SERVICES
from tests.testkit.documents import Json

NODES = 1000
ROUNDS = 3
CRON_JOBS = 500
AT_ONCE = 16
"""Requests beside one another that make them."""
AHEAD = timedelta(seconds=20)
"""How long before their minute all jobs must exist."""
PATIENCE = 120.0
EVERYTHING = (*SERVICES, "jobs", "statefulset", "sidecar", "daemonset")

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(1800)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    """Run all services at rest: every node has its NodeImage."""
    async with bench(tmp_path_factory.mktemp("perf"), nodes=NODES, services=EVERYTHING) as running:
        await eventually(lambda: len(running.cluster.read("nodeimages")["items"]) == NODES)
        yield running


class Round(NamedTuple):
    """Two lives, one right after the other, and how often the job's status was written."""

    native: Life
    ours: Life
    statuses: float


async def live(site: Bench, resource: Resource, name: str) -> Life:
    """Create a pod on every node, and delete all."""
    await site.quiet()
    print(f"\n{resource.api_version} {resource.kind}:")
    life, ready = Life(), site.pods.ready
    await life.step(site, "create", NODES, site.create(resource, name, NODES, OLD), lambda: ready(OLD) == NODES)
    await life.step(site, "delete", NODES, site.delete(resource, name), lambda: len(site.pods) == 0)
    return life


async def once(site: Bench) -> Round:
    native = await live(site, BUILT_IN_DAEMON_SET, "native")
    before = statuses(site)
    return Round(native, await live(site, BROADCAST_JOB, "ours"), statuses(site) - before)


def statuses(site: Bench) -> float:
    """Return Flotilla's writes of BroadcastJobs so far, which are all of statuses."""
    return sum(writes_in(member.metrics_text(), "BroadcastJob") for member in site.flotilla.members.values())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rounds(site: Bench) -> list[Round]:
    return [await once(site) for _ in range(ROUNDS)]


async def test_writes_per_node(rounds: list[Round]) -> None:
    within("broadcastjob_writes_per_node", max(one.ours.pod_writes["create"] for one in rounds))
    within("broadcastjob_status_writes", max(one.statuses for one in rounds))


async def test_create_against_a_built_in_daemon_set(rounds: list[Round]) -> None:
    ratios = [one.ours.seconds["create"] / one.native.seconds["create"] for one in rounds]
    within("broadcastjob_create_ratio", statistics.median(ratios))


async def test_cpu_of_a_life(rounds: list[Round]) -> None:
    within("broadcastjob_cpu_seconds", statistics.median(sum(one.ours.cpu.values()) for one in rounds))


async def test_five_hundred_in_the_same_second(site: Bench, rounds: list[Round]) -> None:
    """Each starts its Job soon, and one only."""
    assert rounds
    await site.quiet()
    due = next_minute(SystemClock().now() + AHEAD + timedelta(seconds=20))
    runs = Runs(site)
    following = asyncio.create_task(runs.follow())
    try:
        await create_all(site, f"{due.minute} {due.hour} * * *")
        assert SystemClock().now() < due - timedelta(seconds=5), "they took too long to be made"
        async with asyncio.timeout((due - SystemClock().now()).total_seconds() + PATIENCE):
            while len(runs.arrived) < CRON_JOBS:
                await SystemClock().sleep(0.1)
        await settled(site)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    assert runs.owners == Counter({f"cron-{number}": 1 for number in range(CRON_JOBS)})
    late = sorted((at - due).total_seconds() for at in runs.arrived.values())
    print(f"\nfirst {late[0]:.2f} s, half {late[CRON_JOBS // 2]:.2f} s, last {late[-1]:.2f} s after their time")
    assert late[0] >= 0
    within("advancedcronjob_start_seconds", late[-1])


def next_minute(after: datetime) -> datetime:
    """Return the first full minute after a moment."""
    return after.replace(second=0, microsecond=0) + timedelta(minutes=1)


class Runs:
    """The Jobs of a namespace as a watch shows them."""

    def __init__(self, site: Bench) -> None:
        self._site = site
        self.arrived: dict[str, datetime] = {}
        self.owners: Counter[str] = Counter()

    async def follow(self) -> None:
        """Watch for as long as the test runs."""
        version = (await self._site.api.list(JOB, NAMESPACE)).resource_version
        async for event in self._site.api.watch(JOB, version, namespace=NAMESPACE):
            if event.type == "ADDED":
                meta = msgspec.json.decode(event.object, type=Job).metadata
                self.arrived[meta.name] = SystemClock().now()
                self.owners[meta.owner_references[0].name] += 1


async def create_all(site: Bench, schedule: str) -> None:
    """Create all AdvancedCronJobs, each with a Job of one pod."""
    free = asyncio.Semaphore(AT_ONCE)

    async def create(number: int) -> None:
        async with free:
            body = msgspec.json.encode(cron_job(f"cron-{number}", schedule))
            await site.api.create(ADVANCED_CRON_JOB, NAMESPACE, body)

    await asyncio.gather(*map(create, range(CRON_JOBS)))


async def settled(site: Bench) -> None:
    """Wait until every status contains its run: the services are idle then."""

    def told() -> bool:
        items = site.cluster.read("acj", "-n", NAMESPACE)["items"]
        return all("lastScheduleTime" in item.get("status", {}) for item in items)

    await eventually(told, PATIENCE)


def cron_job(name: str, schedule: str) -> Json:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox:1.36"}]}
    return {
        "apiVersion": ADVANCED_CRON_JOB.api_version,
        "kind": ADVANCED_CRON_JOB.kind,
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "template": {"jobTemplate": {"spec": {"template": {"spec": pod}}}}},
    }
