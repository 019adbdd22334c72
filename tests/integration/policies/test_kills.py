"""The policy service is killed repeatedly while pods of a budget are deleted and evicted, and probe results change.

At no moment is more admitted than allowed, and in the end all counts are right.
"""

import asyncio
import random
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER
from flotilla_common.api.kinds.podunavailablebudget.types import (
    DELETE,
    DISRUPTED_SECONDS,
    POD_UNAVAILABLE_BUDGET,
    RELATED_BUDGET,
    UNAVAILABLE_SECONDS,
    UPDATE,
    PodUnavailableBudget,
)
from flotilla_common.api.resources import POD
from flotilla_common.bus.interface import BusError
from flotilla_common.clock import SystemClock
from flotilla_common.control.plan import PatchType
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import load_config, read_here
from flotilla_common.kube.interface import ApiError
from flotilla_common.settings import Settings
from flotilla_common.workload.budget import Refusal, changes_of, take
from tests.integration.podprobemarker.conftest import Game, marker
from tests.integration.policies.conftest import Site
from tests.support.budgets import NAME, allows, budget, counted, serving
from tests.support.probe_reports import statuses
from tests.support.spread import plain
from tests.support.workspace import Workspace, is_ready, terminating

PODS, BUDGET, KILLS, TOGETHER = 24, 6, 3, 6
ANSWERS = {200, 403, 404, 409, 429}
LATE_SECONDS = 60.0
"""After its time an entry goes with the next pass, for which the service may have to start first."""
CLOCK = SystemClock()

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def start_policy(site: Site) -> None:
    """Start the policy service, always under one holder of leases, as kubelets do."""
    await site.flotilla.start("policy", flags=["--lease-holder=policy-of-the-test"])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def api(site: Site) -> AsyncIterator[KubeClient]:
    """Connect a client of the apiserver, and give the policy service its holder of leases."""
    config = await load_config(Settings(kubeconfig=str(site.flotilla.cluster.kubeconfig)), reader=read_here)
    client = KubeClient(config, user_agent="test")
    site.flotilla.kill("policy")
    await start_policy(site)
    try:
        yield client
    finally:
        await client.close()


async def until(space: Workspace, check: Callable[[], bool]) -> None:
    """Wait without keeping the loop."""
    await asyncio.to_thread(space.until, check)


async def take_and_die(api: KubeClient, space: Workspace, name: str, operation: str) -> None:
    """Take budget for a pod as a webhook does that ends before it has answered."""
    pod = msgspec.json.decode(await api.get(POD, space.name, name), type=Pod)
    while True:
        body = await api.get(POD_UNAVAILABLE_BUDGET, space.name, NAME)
        found = msgspec.json.decode(body, type=PodUnavailableBudget)
        taken = take(found.status, pod, operation, CLOCK.now())
        assert not isinstance(taken, Refusal)
        version = {"resourceVersion": found.metadata.resource_version}
        patch = msgspec.json.encode({"metadata": version, "status": changes_of(found.status, taken)})
        with suppress(ApiError):
            await api.patch(POD_UNAVAILABLE_BUDGET, space.name, NAME, patch, PatchType.MERGE, subresource="status")
            return


async def disrupt(api: KubeClient, space: Workspace, spared: Sequence[str], seed: int) -> AsyncIterator[int]:
    """Delete and evict one serving pod after the other, without end; the codes of the answers."""
    dice = random.Random(seed)
    while True:
        pods = [name for name, pod in space.pods.items() if is_ready(pod) and not terminating(pod)]
        name = dice.choice([name for name in pods if name not in spared])
        try:
            await (evict if dice.random() < 0.5 else delete)(api, space.name, name)
        except ApiError as refusal:
            yield refusal.code
        else:
            yield 200
        await CLOCK.sleep(0.05)


async def delete(api: KubeClient, namespace: str, name: str) -> None:
    await api.delete(POD, namespace, name)


async def evict(api: KubeClient, namespace: str, name: str) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
    path = f"{POD.path(namespace, name)}/eviction"
    await api.raw("POST", path, msgspec.json.encode(body), {"Content-Type": "application/json"})


async def test_pods_of_a_budget(site: Site, api: KubeClient, space: Workspace) -> None:
    space.apply(plain("apps/v1", "Deployment", PODS))
    space.apply(budget(maxUnavailable=BUDGET))
    await asyncio.to_thread(allows, space, BUDGET, currentAvailable=PODS)
    await until(space, lambda: serving(space.pods) == PODS)  # the record of pods may be behind that of the budget
    spared = sorted(space.pods)[:2]
    since, began, codes = space.now(), CLOCK.monotonic(), Counter[int]()

    async def count(seed: int) -> None:
        async for code in disrupt(api, space, spared, seed):
            codes[code] += 1

    async def progress() -> None:
        """Wait until one more pod has gone."""
        before = codes[200]
        await until(space, lambda: codes[200] > before)

    await take_and_die(api, space, spared[0], DELETE)
    await take_and_die(api, space, spared[1], UPDATE)
    async with asyncio.timeout(200), asyncio.TaskGroup() as group:
        storm = [group.create_task(count(seed)) for seed in range(TOGETHER)]
        for _ in range(KILLS):
            await progress()
            site.flotilla.kill("policy")
            await start_policy(site)
        await progress()
        for task in storm:
            task.cancel()
    assert codes.keys() <= ANSWERS

    settled = {"unavailableAllowed": BUDGET, "currentAvailable": PODS, "desiredAvailable": PODS - BUDGET}
    settled |= {"totalReplicas": PODS, "observedGeneration": 1}
    await until(space, lambda: counted(space) == settled)
    await until(space, lambda: serving(space.pods) == len(space.pods) == PODS)
    print(f"\n{dict(codes)}, {CLOCK.monotonic() - began:.1f} s")
    never_too_many(space, since, began)
    kept_for(space, since, began, "disruptedPods", spared[0], DISRUPTED_SECONDS)
    kept_for(space, since, began, "unavailablePods", spared[1], UNAVAILABLE_SECONDS)
    assert set(spared) <= space.pods.keys()
    stays_named(space, since)
    await until(space, lambda: any(one["reason"] == "NotDeleted" for one in space.read("events")["items"]))
    await site.flotilla.healthy()


def never_too_many(space: Workspace, since: int, began: float) -> None:
    """Check that at no moment more pods were disrupted than the budget has, less the units reserved in vain."""
    for event, pods in zip(space.history(since), space.moments(since), strict=True):
        passed = event.at - began
        held = sum(passed < seconds - 1 for seconds in (DISRUPTED_SECONDS, UNAVAILABLE_SECONDS))
        assert PODS - serving(pods) <= BUDGET - held, passed


def kept_for(space: Workspace, since: int, began: float, member: str, name: str, seconds: float) -> None:
    """Expect that the entry was there until its time was over, and not much longer. Entries have whole seconds."""
    versions = [(one.at - began, one.object["status"]) for one in space.history(since, POD_UNAVAILABLE_BUDGET.kind)]
    held = [name in status.get(member, ()) for _, status in versions]
    first = held.index(True)
    ended = held.index(False, first)
    assert not any(held[ended:])
    assert seconds - 1 <= versions[ended][0] <= seconds + LATE_SECONDS


def stays_named(space: Workspace, since: int) -> None:
    """Expect that no pod has lost the name of its budget, and that all have it in the end."""
    named = defaultdict[str, bool](bool)
    for event in space.history(since):
        meta = event.object["metadata"]
        is_named = meta.get("annotations", {}).get(RELATED_BUDGET) == NAME
        assert is_named or not named[meta["uid"]], meta
        named[meta["uid"]] = is_named
    assert all(pod["metadata"]["annotations"][RELATED_BUDGET] == NAME for pod in space.pods.values())


ROUNDS = 4


def patches(site: Site) -> float:
    """Return how often the status of pods was patched, by the apiserver's count."""
    page = site.flotilla.cluster.kubectl("get", "--raw", "/metrics")
    found = re.findall(r"^apiserver_request_total\{(.*)\} (\S+)$", page, re.MULTILINE)
    wanted = ('resource="pods"', 'subresource="status"', 'verb="PATCH"')
    return sum(float(count) for labels, count in found if all(one in labels for one in wanted))


def insist(game: Game, names: Sequence[str], state: str, message: str) -> None:
    """Report as an agent does: repeat until the report is accepted."""
    said = statuses(game.space.pods, **{f"{name}__m__idle": (state, message) for name in names})
    while True:
        with suppress(BusError):
            if game.send(said).accepted:
                return


def result_on(game: Game, name: str) -> tuple[object, ...]:
    """Return message and status of the condition, label and annotation of a pod."""
    status, message, labels, annotations = game.marks(name)
    return message, status, labels, annotations.get("cost")


@pytest.mark.usefixtures("api")
async def test_results_of_probes(site: Site, space: Workspace) -> None:
    """Write each pod once for each change, whichever replica has to finish the work of another."""
    game, names = Game(space, site.flotilla.nats), [f"p{number}" for number in range(PODS)]
    await asyncio.to_thread(game.start, *names)
    space.apply(marker())
    await until(space, lambda: space.object(POD_PROBE_MARKER.kind, "m").get("status", {}).get("matchedPods") == PODS)
    since, before = space.now(), patches(site)
    for number in range(ROUNDS):
        state, message = ("Succeeded", "Failed")[number % 2], f"round {number}"
        reporting = asyncio.create_task(asyncio.to_thread(insist, game, names, state, message))
        if number % 2:
            await until(space, lambda: any(game.marks(name)[1] == message for name in names))  # noqa: B023
            site.flotilla.kill("policy")
            await start_policy(site)
        await reporting
        shown = ("True", {"idle": "yes"}, "-5") if state == "Succeeded" else ("False", {}, "5")
        await until(space, lambda: all(result_on(game, name) == (message, *shown) for name in names))  # noqa: B023
    await asyncio.to_thread(space.catch_up)
    assert len(space.history(since)) == ROUNDS * PODS
    sent = patches(site) - before
    print(f"{sent:.0f} patches for {ROUNDS * PODS} changes")
    assert ROUNDS * PODS <= sent <= ROUNDS * PODS + ROUNDS // 2 * PODS
    await site.flotilla.healthy()
