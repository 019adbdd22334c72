"""The cost of checking budgets, and their limit under a storm of requests (docs/performance.md)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET, PodUnavailableBudget
from flotilla_common.api.meta import metadata_of
from flotilla_common.api.resources import DEPLOYMENT, POD
from flotilla_common.clock import SystemClock
from flotilla_common.control.plan import PatchType
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.workload.budget import is_ready
from tests.perf.limits import LIMITS, within
from tests.perf.rollouts import NAMESPACE, Bench, bench, writes_in
from tests.perf.webhooks import CHECK, calls, calls_within
from tests.support.balancer import Webhooks, balanced_webhooks
from tests.support.cluster import eventually
from tests.support.fleet import Member

BUDGETS, PODS_EACH, PER_SECOND, TOGETHER = 5, 200, 100, 4
LAST_UNITS = 20
"""The units of each budget that are taken apart from the others."""
PODS, BUDGET = 200, 20
PAUSE_SECONDS = 2.0
"""Before a request that was refused is made again. `kubectl drain` waits for five."""

COUNT = calls(CHECK)
PASSES = 'controller_runtime_reconcile_total{controller="podunavailablebudget-controller"'
CLOCK = SystemClock()

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]


class Site(msgspec.Struct, frozen=True):
    """The control plane with two replicas of the webhook; the controller of budgets is started when it is needed."""

    bench: Bench
    webhooks: Webhooks

    @property
    def api(self) -> KubeClient:
        return self.bench.api

    @property
    def replicas(self) -> list[Member]:
        """Return the replicas of the webhook that run."""
        return [one for one in self.bench.flotilla.members.values() if one.name == "webhook"]

    def sum(self, metric: str) -> float:
        """Return the sum of a metric over all replicas."""
        return sum(one.metric(metric) for one in self.replicas)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with (
        bench(tmp_path_factory.mktemp("perf"), services=("watcher",)) as running,
        balanced_webhooks(running.flotilla, 2) as webhooks,
    ):
        yield Site(running, webhooks)


# The check


def budget(name: str, **spec: object) -> bytes:
    labels = {"matchLabels": {"app": name}}
    document = {**POD_UNAVAILABLE_BUDGET.type_meta, "metadata": {"name": name}, "spec": {"selector": labels, **spec}}
    return msgspec.json.encode(document)


async def create_pod(site: Site, app: str, number: int) -> None:
    """Create a pod that no kubelet runs: the cost of kubelets is not the check's."""
    spec = {"containers": [{"name": "main", "image": "nginx"}], "schedulerName": "nobody"}
    pod = {**POD.type_meta, "metadata": {"name": f"{app}-{number}", "labels": {"app": app}}, "spec": spec}
    await site.api.create(POD, NAMESPACE, msgspec.json.encode(pod))


async def make_ready(site: Site, app: str, number: int) -> None:
    """Mark such a pod as ready."""
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    body = msgspec.json.encode({"status": status})
    await site.api.patch(POD, NAMESPACE, f"{app}-{number}", body, PatchType.MERGE, subresource="status")


async def lone_pod(site: Site, app: str, number: int) -> None:
    await create_pod(site, app, number)
    await make_ready(site, app, number)


PodWork = Callable[[Site, str, int], Awaitable[None]]


async def lone_pods(site: Site, apps: Iterable[str], count: int, work: PodWork = lone_pod) -> None:
    """Do the work for `count` pods of each of these applications, some at once."""
    gate = asyncio.Semaphore(16)

    async def make(number: int, app: str) -> None:
        async with gate:
            await work(site, app, number)

    await asyncio.gather(*(make(number, app) for number in range(count) for app in apps))


async def deletes(site: Site, names: list[str]) -> None:
    """Delete these pods at a fixed rate, in groups as controllers do."""
    begin = CLOCK.monotonic() + 0.5

    async def delete(place: int, name: str) -> None:
        await CLOCK.sleep(begin + place // TOGETHER * TOGETHER / PER_SECOND - CLOCK.monotonic())
        await site.api.delete(POD, NAMESPACE, name)

    await asyncio.gather(*(delete(place, name) for place, name in enumerate(names)))


async def share_slower(site: Site, names: list[str], limit: str) -> float:
    """Delete these pods; return which share of the checks took longer than the limit in milliseconds."""
    quick = calls_within(LIMITS[limit] / 1000, CHECK)
    before = site.sum(COUNT), site.sum(quick)
    await deletes(site, names)
    asked, fast = site.sum(COUNT) - before[0], site.sum(quick) - before[1]
    assert asked >= len(names)  # the apiserver may ask twice, if a pod has changed since it looked
    return 1 - fast / asked


async def test_the_check(site: Site) -> None:
    apps = [f"budget-{number}" for number in range(BUDGETS)]
    names = [f"{app}-{number}" for number in range(PODS_EACH) for app in apps]
    for app in apps:
        await site.api.create(
            POD_UNAVAILABLE_BUDGET, NAMESPACE, budget(app, maxUnavailable=PODS_EACH - 1, protectTotalReplicas=PODS_EACH)
        )
        status = {"unavailableAllowed": 10_000, "currentAvailable": 1, "desiredAvailable": 1, "totalReplicas": 1}
        body = msgspec.json.encode({"status": status})
        await site.api.patch(POD_UNAVAILABLE_BUDGET, NAMESPACE, app, body, PatchType.MERGE, subresource="status")
    await lone_pods(site, ["outside"], PODS_EACH)
    before = site.sum(COUNT)
    await deletes(site, [f"outside-{number}" for number in range(PODS_EACH)])
    assert site.sum(COUNT) == before  # no call for pods outside of every budget, not even here
    await lone_pods(site, apps, PODS_EACH)
    await site.webhooks.stop("webhook-1")  # no other writer: no conflicts
    slower = await share_slower(site, names, "podunavailablebudget_p99_ms")
    await site.webhooks.start("webhook-1")
    within("podunavailablebudget_share_slower", slower)
    await site.bench.flotilla.start("policy")
    await lone_pods(site, apps, PODS_EACH)
    await eventually_allowed(site, apps, PODS_EACH - 1)
    first, last = PODS_EACH - LAST_UNITS, PODS_EACH
    others = [f"{app}-{number}" for number in range(1, first) for app in apps]
    slower = await share_slower(site, others, "podunavailablebudget_conflict_p99_ms")
    within("podunavailablebudget_conflict_share_slower", slower)
    # Units are not taken ahead at the end of a budget: these requests wait for their writes, and each is admitted.
    others = [f"{app}-{number}" for number in range(first, last) for app in apps]
    slower = await share_slower(site, others, "podunavailablebudget_conflict_p99_ms")
    print(f"\nof the last {LAST_UNITS} units of each budget {slower:.0%} took longer")
    for app in apps:
        await site.api.delete(POD_UNAVAILABLE_BUDGET, NAMESPACE, app)


async def allowed(site: Site, name: str) -> int:
    body = await site.api.get(POD_UNAVAILABLE_BUDGET, NAMESPACE, name)
    return msgspec.json.decode(body, type=PodUnavailableBudget).status.unavailable_allowed


async def eventually_allowed(site: Site, names: Iterable[str], units: int) -> None:
    for name in names:
        async with asyncio.timeout(60):
            while await allowed(site, name) != units:
                await CLOCK.sleep(0.1)


# The controller

APPS, MEMBERS = [f"counted-{number}" for number in range(10)], 100


class Work(msgspec.Struct, frozen=True):
    """The controller's work so far: passes, writes of pods, and of statuses with conflicts included."""

    passes: float
    pods: float
    statuses: float

    @classmethod
    def of(cls, member: Member) -> "Work":
        text = member.metrics_text()
        kind, lines = POD_UNAVAILABLE_BUDGET.kind, text.splitlines()
        return cls(
            passes=sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(PASSES)),
            pods=writes_in(text),
            statuses=sum(writes_in(text, kind, outcome) for outcome in ("Ok", "Conflict")),
        )

    def __sub__(self, other: "Work") -> "Work":
        return Work(self.passes - other.passes, self.pods - other.pods, self.statuses - other.statuses)


async def test_the_controller(site: Site) -> None:
    """Pods that existed before their budgets are patched once each.

    As they become ready, statuses are written from time to time, independent of the number of pods.
    """
    if "policy" not in site.bench.flotilla.members:
        await site.bench.flotilla.start("policy")
    policy, number = site.bench.flotilla.members["policy"], len(APPS) * MEMBERS
    await lone_pods(site, APPS, MEMBERS, create_pod)
    before = Work.of(policy)
    for app in APPS:
        await site.api.create(
            POD_UNAVAILABLE_BUDGET, NAMESPACE, budget(app, maxUnavailable=10, protectTotalReplicas=MEMBERS)
        )
    await eventually(lambda: (Work.of(policy) - before).pods >= number, 120)
    await eventually(lambda: policy.metric("controller_runtime_active_workers") == 0)
    named = Work.of(policy) - before
    before, began = Work.of(policy), CLOCK.monotonic()
    await lone_pods(site, APPS, MEMBERS, make_ready)
    lasted = CLOCK.monotonic() - began
    await eventually_allowed(site, APPS, 10)
    await site.bench.quiet()
    ready = Work.of(policy) - before
    print(f"\nnamed: {named}; ready within {lasted:.1f} s: {ready}")
    assert named.pods == number
    assert ready.pods == 0
    within("podunavailablebudget_status_writes_per_second", ready.statuses / len(APPS) / (lasted + 1))
    within("podunavailablebudget_passes_per_change", ready.passes / number)
    for app in APPS:
        await site.api.delete(POD_UNAVAILABLE_BUDGET, NAMESPACE, app)
        await site.api.raw("DELETE", f"{POD.path(NAMESPACE)}?labelSelector=app%3D{app}")


# The storm


class Serving:
    """The number of available pods of an application, as a watch shows it, and its minimum."""

    def __init__(self, app: str) -> None:
        self._app = app
        self._serving: set[str] = set()
        self.least = PODS

    @property
    def now(self) -> int:
        """Return how many pods serve."""
        return len(self._serving)

    def reset(self) -> None:
        """Look at the least from now on."""
        self.least = self.now

    async def follow(self, api: KubeClient) -> None:
        """Watch until cancelled."""
        version = (await api.list(POD, NAMESPACE, limit=1)).resource_version
        while True:
            with suppress(ApiError, Unreachable):
                async for event in api.watch(POD, version, namespace=NAMESPACE):
                    version = metadata_of(event.object).resource_version
                    if event.type != "BOOKMARK":
                        self._take(msgspec.json.decode(event.object, type=Pod), gone=event.type == "DELETED")

    def _take(self, pod: Pod, *, gone: bool) -> None:
        if pod.metadata.labels.get("app") != self._app:
            return
        (self._serving.discard if gone or not is_ready(pod) else self._serving.add)(pod.metadata.uid)
        self.least = min(self.least, self.now)


def deployment(name: str) -> bytes:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    spec = {"replicas": PODS, "selector": {"matchLabels": labels}, "template": template}
    return msgspec.json.encode({**DEPLOYMENT.type_meta, "metadata": {"name": name}, "spec": spec})


async def evict(api: KubeClient, name: str) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}}
    path = f"{POD.path(NAMESPACE, name)}/eviction"
    await api.raw("POST", path, msgspec.json.encode(body), {"Content-Type": "application/json"})


async def storm(site: Site, app: str) -> Counter[int]:
    """Delete and evict all pods at once, each until it is admitted; return the codes of all answers."""
    page = await site.api.list(POD, NAMESPACE, label_selector=f"app={app}")
    names = [metadata_of(item).name for item in page.items]
    codes: Counter[int] = Counter()

    async def insist(number: int, name: str) -> None:
        while True:
            try:
                await (evict(site.api, name) if number % 2 else site.api.delete(POD, NAMESPACE, name))
            except ApiError as refusal:
                codes[refusal.code] += 1
                if refusal.code == 404:
                    return
            else:
                codes[200] += 1
                return
            await CLOCK.sleep(PAUSE_SECONDS)

    await asyncio.gather(*(insist(number, name) for number, name in enumerate(names)))
    return codes


async def round_of(site: Site, app: str, serving: Serving, disturb: Callable[[], Awaitable[None]]) -> Counter[int]:
    """Run one storm over pods that all serve, with a disturbance in its middle."""
    await eventually(lambda: serving.now == PODS, 120)
    await eventually_allowed(site, [app], BUDGET)
    serving.reset()
    began = CLOCK.monotonic()
    running = asyncio.create_task(storm(site, app))
    await eventually(lambda: serving.least < PODS, 30)
    await disturb()
    codes = await running
    await eventually(lambda: serving.now == PODS, 120)
    print(f"\n{dict(codes)}, least {serving.least}, {CLOCK.monotonic() - began:.1f} s")
    assert serving.least == PODS - BUDGET  # all of the budget was used, and no more
    return codes


async def test_a_storm(site: Site) -> None:
    app = "storm"
    serving = Serving(app)
    if "policy" not in site.bench.flotilla.members:
        await site.bench.flotilla.start("policy")
    watching = asyncio.create_task(serving.follow(site.api))
    await site.api.create(DEPLOYMENT, NAMESPACE, deployment(app))
    await site.api.create(POD_UNAVAILABLE_BUDGET, NAMESPACE, budget(app, maxUnavailable=BUDGET))

    async def stop(name: str) -> None:
        await site.webhooks.stop(name)
        await site.webhooks.start(name)

    async def kill() -> None:
        site.bench.flotilla.kill("webhook-0")
        await site.webhooks.start("webhook-0")

    try:
        for name in ("webhook-0", "webhook-1"):
            codes = await round_of(site, app, serving, lambda name=name: stop(name))
            assert not [code for code in codes if code >= 500]
        await round_of(site, app, serving, kill)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
