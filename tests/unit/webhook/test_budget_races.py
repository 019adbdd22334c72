"""Budgets are kept under any events between reading and writing them (podunavailablebudget.md §8.6)."""

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from flotilla_common.api.admission.review import ALLOWED
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_webhook.status_writer import WRITE_TIMEOUT_SECONDS
from tests.testkit.documents import Json
from tests.unit.webhook.budget_world import NAMESPACE, World, budget, pod, with_image
from tests.unit.webhook.test_status_writer import CONFLICT, Distant, SlowClock, once, raising


async def replicas(cluster: Distant, count: int = 2, *, watching: bool = True) -> list[World]:
    """Return `count` webhooks, each with a watch."""
    worlds = [await World(cluster=cluster, clock=SlowClock()).watch() for _ in range(count)]
    cluster.watching = [world.budgets.cache for world in worlds] if watching else []
    return worlds


def cluster_with(document: Json, lag: int = 3) -> Distant:
    cluster = Distant(lag, POD_UNAVAILABLE_BUDGET)
    cluster.put(POD_UNAVAILABLE_BUDGET, document)
    return cluster


@pytest.mark.parametrize("lag", [0, 3, 100])
async def test_a_storm_on_two_replicas(lag: int) -> None:
    """Follow example 42: exactly as many pass as the budget has, however late the watches are."""
    cluster = cluster_with(budget(20, status={"currentAvailable": 200, "desiredAvailable": 180}), lag)
    worlds = await replicas(cluster)
    answers = await asyncio.gather(*(worlds[number % 2].delete(pod(f"p{number}")) for number in range(200)))
    assert Counter(answer.allowed for answer in answers) == {True: 20, False: 180}
    assert worlds[0].entries()["allowed"] == 0
    assert len(worlds[0].entries()["disruptedPods"]) == 20
    assert len(cluster.writes) <= 10  # requests share writes
    assert len(cluster.gets) <= 20  # and refusals share reads


async def test_deletes_of_two_pods_at_once() -> None:
    cluster = cluster_with(budget(1))
    first, second = await replicas(cluster)
    answers = await asyncio.gather(first.delete(pod("a")), second.delete(pod("b")))
    assert sorted(answer.allowed for answer in answers) == [False, True]


async def test_nobody_is_refused_on_an_old_copy() -> None:
    cluster = cluster_with(budget(0))
    (world,) = await replicas(cluster, 1, watching=False)
    cluster.put(POD_UNAVAILABLE_BUDGET, budget(1))
    assert await world.delete(pod()) == ALLOWED
    assert world.entries() == {"allowed": 0, "disruptedPods": ["a"]}


@pytest.mark.parametrize(
    "old",
    [
        pytest.param(budget(0, status={"desiredAvailable": 0}), id="nothing was desired"),
        pytest.param(budget(0, spec={"protectOperations": ["EVICT"]}), id="the operation was not protected"),
        pytest.param(budget(0, status={"disruptedPods": {"a": "2025-12-31T23:59:54Z"}}), id="an entry was there"),
        pytest.param(None, id="there was no budget"),
    ],
)
async def test_nobody_passes_on_an_old_copy(old: Json | None) -> None:
    cluster = Distant(3, POD_UNAVAILABLE_BUDGET)
    if old is not None:
        cluster.put(POD_UNAVAILABLE_BUDGET, old)
    (world,) = await replicas(cluster, 1, watching=False)
    cluster.put(POD_UNAVAILABLE_BUDGET, budget(0))
    assert not (await world.delete(pod())).allowed


async def test_a_request_that_comes_again_costs_no_read() -> None:
    """The apiserver calls twice where it has seen an old version of the pod first."""
    cluster = cluster_with(budget(1))
    (world,) = await replicas(cluster, 1, watching=False)
    assert await world.delete(pod()) == ALLOWED
    reads = len(cluster.gets)
    assert await world.delete(pod()) == ALLOWED
    assert (len(cluster.gets), world.entries()) == (reads, {"allowed": 0, "disruptedPods": ["a"]})


async def test_a_dry_run_is_not_judged_on_an_old_copy() -> None:
    cluster = cluster_with(budget(1))
    (world,) = await replicas(cluster, 1, watching=False)
    cluster.put(POD_UNAVAILABLE_BUDGET, budget(0))
    assert not (await world.delete(pod(), dry_run=True)).allowed


async def test_a_conflict_is_decided_anew() -> None:
    """The controller has counted again meanwhile."""
    cluster = cluster_with(budget(1))
    (world,) = await replicas(cluster, 1, watching=False)
    cluster.before_write = once(lambda: cluster.put(POD_UNAVAILABLE_BUDGET, budget(0)))
    assert not (await world.delete(pod())).allowed
    assert world.entries() == {"allowed": 0}


@pytest.mark.parametrize("arrived", [True, False], ids=["it arrived", "it did not"])
@pytest.mark.parametrize("failure", [Unreachable("timed out"), CONFLICT, ApiError(500, "", "oops")], ids=str)
async def test_nobody_knows_whether_a_write_arrived(arrived: bool, failure: Exception) -> None:
    """Find the pod's unit in the status, and take no second one."""
    cluster = cluster_with(budget(2))
    (world,) = await replicas(cluster, 1, watching=False)
    lost: Callable[[], None] = once(raising(failure))
    if arrived:
        cluster.after_write = lost
    else:
        cluster.before_write = lost
    assert await world.delete(pod("a")) == ALLOWED
    assert world.entries() == {"allowed": 1, "disruptedPods": ["a"]}


async def test_one_that_is_always_too_late_gives_up() -> None:
    cluster = cluster_with(budget(1))
    (world,) = await replicas(cluster, 1, watching=False)
    cluster.before_write = raising(CONFLICT)
    answer = await world.delete(pod())
    assert (answer.code, answer.reason, answer.message) == (403, "Forbidden", CONFLICT.message)
    assert WRITE_TIMEOUT_SECONDS < world.clock.time < 2 * WRITE_TIMEOUT_SECONDS


async def test_a_budget_that_is_deleted_meanwhile_lets_pass() -> None:
    """Follow example 54."""
    cluster = cluster_with(budget(1))
    (world,) = await replicas(cluster, 1, watching=False)

    def vanish() -> None:
        del cluster.objects[POD_UNAVAILABLE_BUDGET.plural, NAMESPACE, "pub"]

    cluster.before_write = once(vanish)
    assert await world.delete(pod()) == ALLOWED


async def test_a_namesake_is_another_budget() -> None:
    cluster = cluster_with(budget(1))
    (world,) = await replicas(cluster, 1, watching=False)
    cluster.put(POD_UNAVAILABLE_BUDGET, budget(0, metadata={"uid": "another"}))
    assert not (await world.delete(pod())).allowed


async def test_a_recreated_pod_is_another_pod() -> None:
    cluster = cluster_with(budget(0, status={"disruptedPods": {"a": "2025-12-31T23:30:00Z"}}))
    (world,) = await replicas(cluster, 1)
    newer = pod(metadata={"creationTimestamp": "2025-12-31T23:45:00Z"})
    assert (await world.delete(pod())).allowed
    assert not (await world.delete(newer)).allowed


async def test_two_requests_about_one_pod_take_one_unit() -> None:
    cluster = cluster_with(budget(2))
    first, second = await replicas(cluster)
    answers = await asyncio.gather(*(one.delete(pod("a")) for one in (first, first, second, second)))
    assert all(answer.allowed for answer in answers)
    assert first.entries() == {"allowed": 1, "disruptedPods": ["a"]}


async def test_a_deletion_and_an_update_of_one_pod_take_one_unit() -> None:
    cluster = cluster_with(budget(2))
    first, second = await replicas(cluster)
    answers = await asyncio.gather(first.delete(pod("a")), second.update(pod("a"), with_image(pod("a"), "n:2")))
    assert all(answer.allowed for answer in answers)
    assert first.entries()["allowed"] == 1


async def test_dry_runs_in_a_group_take_nothing_from_others() -> None:
    cluster = cluster_with(budget(1))
    (world,) = await replicas(cluster, 1)
    dry, real = await asyncio.gather(world.delete(pod("a"), dry_run=True), world.delete(pod("b")))
    assert (dry.allowed, real.allowed) == (True, True)
    assert world.entries() == {"allowed": 0, "disruptedPods": ["b"]}


async def test_bookings_of_budgets_that_are_gone_are_forgotten() -> None:
    world = await World(budget(1)).watch()
    for number in range(1100):
        await world.delete(pod(metadata={"annotations": {"pub.kruise.io/related-pub": f"gone-{number}"}}))
    assert len(world.budgets._units) <= 1000
