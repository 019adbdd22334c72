"""Units that are taken ahead while many requests come: never more than there are, and none is lost (ADR 33)."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from flotilla_common.api.admission.review import ALLOWED, Answer, denied
from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.podunavailablebudget.types import (
    AHEAD,
    DISRUPTED_SECONDS,
    POD_UNAVAILABLE_BUDGET,
    PodUnavailableBudget,
)
from flotilla_common.api.meta import rfc3339
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_policy.podunavailablebudget.entries import in_doubt
from flotilla_policy.podunavailablebudget.plan import plan
from flotilla_policy.podunavailablebudget.snapshot import BudgetSnapshot, Counted
from flotilla_webhook.budgets.units import AWAITED_SECONDS
from flotilla_webhook.budgets.units_ahead import RECOUNTED_SECONDS
from flotilla_webhook.pods.admission import Check, CheckResult, PodChange
from flotilla_webhook.status_writer import WRITE_TIMEOUT_SECONDS
from flotilla_webhook.taking_ahead import IDLE_SECONDS
from tests.testkit.documents import Json, decoded
from tests.unit.webhook.budget_world import NAMESPACE, World, budget, pod, with_image
from tests.unit.webhook.test_budget_races import cluster_with, replicas
from tests.unit.webhook.test_status_writer import CONFLICT, Distant, once, raising, turns

PACE = 0.01
"""Seconds between two requests of a storm."""

PODS = 100


class Controller:
    """The pods of a workload, which replaces deleted ones, and the controller that counts them, a while later."""

    def __init__(self, world: World, cluster: Distant, most: int, *, lag: int = 20, replaced: float = 0.2) -> None:
        """Prepare. `most`: pods that may be unavailable. `replaced`: seconds until a new pod serves."""
        self._world = world
        self._cluster = cluster
        self._lag = lag
        self._replaced = replaced
        self._made = 0
        self.most = most
        self.pods: dict[str, Json] = {}
        self.least = PODS
        self._background: set[asyncio.Task[None]] = set()
        for _ in range(PODS):
            self._make()

    def _make(self) -> None:
        name = f"p{self._made}"
        self._made += 1
        self.pods[name] = pod(name)

    def goes(self, name: str) -> None:
        """Take a pod away whose deletion was admitted."""
        if self.pods.pop(name, None) is not None:
            self.least = min(self.least, len(self.pods))
            self.start(self._replace())

    async def _replace(self) -> None:
        await self._world.clock.sleep(self._replaced)
        self._make()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Let it run beside the test."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def count(self) -> None:
        """Count again and again, from pods as they were a while ago."""
        while True:
            stored = decoded(self._world.stored(), PodUnavailableBudget)
            there = [msgspec.convert(one, Pod) for one in self.pods.values()]
            await turns(self._lag)
            patch = plan(self._snapshot(stored, there), self._world.clock.now()).status
            is_newest = self._world.stored()["metadata"]["resourceVersion"] == stored.metadata.resource_version
            if patch is not None and is_newest:
                changed = msgspec.json.decode(msgspec.json.encode(self._world.stored()))
                self._cluster.put(POD_UNAVAILABLE_BUDGET, _merged(changed, patch.body["status"]))
            await self._world.clock.sleep(0.02)

    def _snapshot(self, stored: PodUnavailableBudget, there: list[Pod]) -> BudgetSnapshot:
        named = {one.metadata.name: one for one in there}
        doubtful = {name for name, _ in in_doubt(stored.status, named, self._world.clock.now())}
        return BudgetSnapshot(
            budget=stored,
            pods=there,
            workloads=[Counted("CloneSet", "web", PODS)],
            expected=PODS,
            named=named,
            just_read=frozenset(doubtful),
        )


def _merged(document: Json, changes: Json) -> Json:
    for key, value in changes.items():
        held = document["status"].get(key)
        if isinstance(value, dict):
            document["status"][key] = {k: v for k, v in ((held or {}) | value).items() if v is not None}
        elif value is None:
            document["status"].pop(key, None)
        else:
            document["status"][key] = value
    return document


async def storm(worlds: list[World], count: int, *, begin: int = 0, pace: float = PACE) -> list[Answer]:
    """Delete pods at a steady pace without waiting for answers, by turns of the replicas."""
    deleting: list[asyncio.Task[Answer]] = []
    for number in range(count):
        deleting.append(asyncio.create_task(worlds[number % len(worlds)].delete(pod(f"p{begin + number}"))))
        await worlds[0].clock.sleep(pace)
    return await asyncio.gather(*deleting)


async def rest(world: World) -> None:
    """Wait until no request has come for a while."""
    await world.clock.sleep(2 * IDLE_SECONDS)


def ahead(world: World) -> int:
    """Return the number of units that are taken ahead."""
    return sum(key.startswith(AHEAD) for key in world.stored()["status"].get("disruptedPods", {}))


def allowed(world: World) -> int:
    """Return the units that are left."""
    return int(world.stored()["status"]["unavailableAllowed"])


def taken(world: World) -> list[str]:
    """Return the pods that have taken a unit."""
    return [key for key in world.stored()["status"].get("disruptedPods", {}) if not key.startswith(AHEAD)]


async def plenty(count: int = 2, units: int = 1000) -> tuple[Distant, list[World]]:
    cluster = cluster_with(budget(units, status={"currentAvailable": 2 * units, "desiredAvailable": units}))
    return cluster, await replicas(cluster, count)


async def test_requests_need_not_wait_for_writes() -> None:
    cluster, worlds = await plenty()
    assert await storm(worlds, 200) == [ALLOWED] * 200
    assert len(cluster.writes) < 40
    await rest(worlds[0])
    assert (ahead(worlds[0]), len(taken(worlds[0])), allowed(worlds[0])) == (0, 200, 800)


async def test_a_unit_that_is_held_needs_no_apiserver() -> None:
    cluster, (world,) = await plenty(1)
    await storm([world], 20)
    cluster.before_write = raising(ApiError(500, "", "no"))
    assert await world.delete(pod("late")) == ALLOWED
    cluster.before_write = lambda: None
    await rest(world)
    assert "late" in taken(world)
    assert (ahead(world), allowed(world)) == (0, 1000 - 21)


async def test_updates_take_units_ahead_too() -> None:
    _, (world,) = await plenty(1)
    await storm([world], 20)
    assert await world.update(pod("u"), with_image(pod("u"), "nginx:2")) == ALLOWED
    await rest(world)
    assert list(world.stored()["status"]["unavailablePods"]) == ["u"]
    assert allowed(world) == 1000 - 21


async def test_few_requests_take_nothing_ahead() -> None:
    cluster, (world,) = await plenty(1)
    for number in range(5):
        assert await world.delete(pod(f"p{number}")) == ALLOWED
        await world.clock.sleep(1.5)
    assert (len(cluster.writes), allowed(world)) == (5, 995)


async def test_the_last_units_are_not_taken_ahead() -> None:
    cluster = cluster_with(budget(7, status={"currentAvailable": 20, "desiredAvailable": 13}))
    worlds = await replicas(cluster, 2)
    most: list[int] = []
    cluster.after_write = lambda: most.append(ahead(worlds[0]))
    answers = await storm(worlds, 20)
    assert [one.allowed for one in answers] == [True] * 7 + [False] * 13
    assert max(most) == 0


@pytest.mark.parametrize("lag", [3, 40])
async def test_exactly_as_many_are_admitted_as_there_are(lag: int) -> None:
    """Both replicas hold units when the budget is used up, without a new count by the controller."""
    cluster = cluster_with(budget(60, status={"currentAvailable": 160, "desiredAvailable": 100}), lag)
    worlds = await replicas(cluster, 2)
    held: list[int] = []
    cluster.after_write = lambda: held.append(ahead(worlds[0]))
    answers = await storm(worlds, 120)
    assert max(held) > 0
    assert sum(one.allowed for one in answers) == 60
    await rest(worlds[0])
    assert (ahead(worlds[0]), allowed(worlds[0])) == (0, 0)


@pytest.mark.parametrize("seed", range(6))
async def test_never_more_than_may_be_away(seed: int) -> None:
    """Pods are deleted and replaced, writes fail or their outcome is lost, replicas die, and the controller counts."""
    dice = random.Random(seed)
    most = dice.choice((5, 20, 40))
    cluster = cluster_with(budget(0, spec={"maxUnavailable": most}), dice.choice((0, 3, 30)))
    worlds = await replicas(cluster, 3)
    controller = Controller(worlds[0], cluster, most, lag=dice.choice((1, 20, 60)))
    controller.start(controller.count())
    await worlds[0].clock.sleep(0.2)

    def fail() -> None:
        if dice.random() < 0.05:
            raise dice.choice((CONFLICT, Unreachable("timed out"), ApiError(500, "", "oops")))

    cluster.before_write = cluster.after_write = fail
    alive = list(worlds)

    async def insist(name: str) -> None:
        while True:
            world = dice.choice(alive)
            if (await world.delete(controller.pods.get(name) or pod(name))).allowed:
                await turns(dice.randrange(20))
                controller.goes(name)
                return
            await world.clock.sleep(0.2)

    going: list[asyncio.Task[None]] = []
    for number in range(PODS):
        going.append(asyncio.create_task(insist(f"p{number}")))
        await worlds[0].clock.sleep(dice.choice((0, 0.005, 0.02)))
        if number == PODS // 2:
            alive.remove(dead := worlds[2])
            _die(dead)
    await asyncio.gather(*going)
    assert controller.least >= PODS - most
    cluster.before_write = cluster.after_write = lambda: None
    await worlds[0].clock.sleep(DISRUPTED_SECONDS + 2)
    assert (ahead(worlds[0]), taken(worlds[0]), allowed(worlds[0])) == (0, [], most)


def _die(world: World) -> None:
    """End what a replica was about to write."""
    for units in world.budgets._units.values():
        for task in (units._ahead._task, units._ahead._hurried):
            if task is not None:
                task.cancel()


async def test_a_storm_without_an_end_uses_all_of_the_budget() -> None:
    """Units that are counted twice for a moment, or returned, are available again before requests fail for long."""
    cluster = cluster_with(budget(0, spec={"maxUnavailable": 60}))
    worlds = await replicas(cluster, 2)
    controller = Controller(worlds[0], cluster, 60, replaced=1000)
    controller.start(controller.count())
    await worlds[0].clock.sleep(0.2)
    admitted: list[str] = []

    async def delete(number: int) -> None:
        if (await worlds[number % 2].delete(pod(f"p{number}"))).allowed:
            admitted.append(f"p{number}")
            controller.goes(f"p{number}")

    for number in range(62):
        controller.start(delete(number))
        await worlds[0].clock.sleep(PACE)
    await rest(worlds[0])
    assert len(admitted) == 60


async def test_a_request_that_comes_again_takes_no_second_unit() -> None:
    cluster, (first, second) = await plenty()
    await storm([first], 20)
    writes = len(cluster.writes)
    assert await first.delete(pod("p19")) == ALLOWED
    assert len(cluster.writes) == writes
    assert await second.delete(pod("p19")) == ALLOWED
    await rest(first)
    assert (ahead(first), len(taken(first)), allowed(first)) == (0, 20, 980)


async def test_a_unit_is_taken_back_before_it_is_written_down() -> None:
    """A later check refuses what the budget admitted."""

    async def refuse(change: PodChange) -> CheckResult:
        name = change.pod["metadata"]["name"]
        return CheckResult(denied("no") if name.startswith("kept") else ALLOWED)

    async def no_rules() -> list[Any]:
        return []

    cluster, _ = await plenty(1)
    last = Check("Last", no_rules, refuse)
    world = await World(cluster=cluster, clock=(await replicas(cluster, 1))[0].clock, after=(last,)).watch()
    cluster.watching = [world.budgets.cache]
    await storm([world], 20)
    answers = await asyncio.gather(*(world.delete(pod(f"kept-{number}")) for number in range(3)))
    assert [one.message for one in answers] == ["no"] * 3
    await rest(world)
    assert sorted(taken(world)) == sorted(f"p{number}" for number in range(20))
    assert (ahead(world), allowed(world)) == (0, 980)


async def test_a_unit_counts_only_while_the_status_has_it() -> None:
    """The controller has dropped it, by its own clock or because the status was edited."""
    cluster, (world,) = await plenty(1)
    await storm([world], 20)
    assert ahead(world)
    stored = msgspec.json.decode(msgspec.json.encode(world.stored()))
    stored["status"] |= {"disruptedPods": {}, "unavailableAllowed": 0}
    cluster.put(POD_UNAVAILABLE_BUDGET, stored)
    await turns(20)
    assert not (await world.delete(pod("late"))).allowed


@pytest.mark.parametrize("arrived", [True, False], ids=["it arrived", "it did not"])
async def test_units_of_a_write_whose_outcome_was_unknown_are_returned(arrived: bool) -> None:
    cluster, (world,) = await plenty(1)
    lose: Callable[[], None] = once(raising(Unreachable("timed out")))

    def lose_one_that_takes_ahead() -> None:
        if ahead(world) or not arrived:
            lose()

    if arrived:
        cluster.after_write = lose_one_that_takes_ahead
    else:
        cluster.before_write = lose_one_that_takes_ahead
    assert await storm([world], 40) == [ALLOWED] * 40
    await rest(world)
    assert (ahead(world), len(taken(world)), allowed(world)) == (0, 40, 960)


async def test_a_replica_that_dies_is_waited_for_no_longer_than_necessary() -> None:
    cluster = cluster_with(budget(40, status={"currentAvailable": 140, "desiredAvailable": 100}))
    first, second = await replicas(cluster)
    await storm([first], 16)
    lost = ahead(first)
    assert lost
    _die(first)
    left = allowed(first)
    begun = second.clock.monotonic()
    answers = await storm([second], left + 2, begin=50)
    assert [one.allowed for one in answers] == [True] * left + [False] * 2
    assert second.clock.monotonic() - begun < (left + 2) * PACE + AWAITED_SECONDS + 0.2
    await second.clock.sleep(RECOUNTED_SECONDS)
    begun = second.clock.monotonic()
    answer = await second.delete(pod("late"))
    assert second.clock.monotonic() - begun < 0.1
    assert f"{lost} of it are held by the webhook for requests that come now" in answer.message


@pytest.mark.parametrize(("age", "admitted"), [(0, True), (3, True), (10, False)])
async def test_units_of_others_that_may_come_back_are_waited_for(age: float, admitted: bool) -> None:
    """Units that another replica returns are counted by the controller a moment later."""
    now = "2025-12-31T23:59:50Z"
    unit = {f"{AHEAD}0123/1": rfc3339(datetime.fromisoformat(now) + timedelta(seconds=10 - age))}
    cluster = cluster_with(budget(0, status={"disruptedPods": unit}))
    (world,) = await replicas(cluster, 1)
    deleting = asyncio.create_task(world.delete(pod("a")))
    await world.clock.sleep(0.3)
    cluster.put(POD_UNAVAILABLE_BUDGET, budget(0))
    await world.clock.sleep(0.3)
    cluster.put(POD_UNAVAILABLE_BUDGET, budget(1))
    assert (await deleting).allowed is admitted


async def test_who_ends_returns_what_is_left() -> None:
    _, worlds = await plenty()
    await storm(worlds, 30)
    assert ahead(worlds[0])
    for world in worlds:
        await world.budgets.close()
    assert (ahead(worlds[0]), allowed(worlds[0])) == (0, 970)


async def test_who_ends_does_not_wait_for_an_apiserver_that_is_away() -> None:
    cluster, (world,) = await plenty(1)
    await storm([world], 30)
    assert ahead(world)
    cluster.before_write = raising(Unreachable("connection refused"))
    begun = world.clock.monotonic()
    async with asyncio.timeout(10):
        await world.budgets.close()
    assert world.clock.monotonic() - begun < 2 * WRITE_TIMEOUT_SECONDS


async def test_a_replica_that_may_not_write_tries_seldom_and_comes_to_an_end() -> None:
    cluster, (world,) = await plenty(1)
    await storm([world], 20)
    tries: list[float] = []

    def refuse() -> None:
        tries.append(world.clock.time)
        raise ApiError(403, "Forbidden", "no")

    cluster.before_write = refuse
    await world.clock.sleep(10)
    assert 1 <= len(tries) <= 11
    stored = msgspec.json.decode(msgspec.json.encode(world.stored()))
    stored["status"]["disruptedPods"] = {"p0": rfc3339(world.clock.now())}  # the controller has dropped the units
    cluster.put(POD_UNAVAILABLE_BUDGET, stored)
    await world.clock.sleep(DISRUPTED_SECONDS)
    tries.clear()
    await world.clock.sleep(10)
    assert tries == []


async def test_a_budget_that_is_deleted_is_forgotten() -> None:
    cluster, (world,) = await plenty(1)
    await storm([world], 20)
    del cluster.objects[POD_UNAVAILABLE_BUDGET.plural, NAMESPACE, "pub"]
    await rest(world)
    await world.clock.sleep(IDLE_SECONDS)
    assert not any(units.busy for units in world.budgets._units.values())
    assert await world.delete(pod("late")) == ALLOWED
