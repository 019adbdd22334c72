"""Places that are taken ahead while many pods come: they go to the requests that wait, and none is lost (ADR 29)."""

import asyncio
import copy
from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from flotilla_common.api.kinds.workloadspread.book import AHEAD
from flotilla_common.api.kinds.workloadspread.types import PLACE, WORKLOAD_SPREAD
from flotilla_common.bus.interface import Message
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_webhook.spreading.places import AWAITED_SECONDS
from flotilla_webhook.spreading.places_ahead import AHEAD_SECONDS, FRESH_SECONDS
from flotilla_webhook.taking_ahead import IDLE_SECONDS, MANY
from tests.support.fake_bus import FakeBus
from tests.testkit.documents import Json
from tests.unit.webhook.spread_world import NAMESPACE, World, mark, pod, spread, subset
from tests.unit.webhook.test_status_writer import Distant, DistantBus, raising, replicas, turns

PACE = 0.01
"""Seconds between two pods of a storm."""


async def storm(worlds: list[World], count: int, *, begin: int = 0, named: bool = True) -> list[Json]:
    """Create pods at a steady pace without waiting for answers, by turns of the replicas; return what is stored."""

    async def create(number: int) -> Json:
        world = worlds[number % len(worlds)]
        return await world.create(pod(f"p{begin + number}" if named else "", uid=str(begin + number)))

    creating: list[asyncio.Task[Json]] = []
    for number in range(count):
        creating.append(asyncio.create_task(create(number)))
        await worlds[0].clock.sleep(PACE)
    return await asyncio.gather(*creating)


async def rest(world: World) -> None:
    """Wait until no pod has come for a while."""
    await world.clock.sleep(2 * IDLE_SECONDS)


def ahead(world: World) -> int:
    """Return the number of places that are taken ahead."""
    return sum(key.startswith(AHEAD) for entry in world.book().values() for key in entry.get("creatingPods", {}))


async def distant(*subsets: Json, count: int = 2, bus: FakeBus | None = None) -> tuple[Distant, list[World]]:
    cluster = Distant()
    cluster.put(WORKLOAD_SPREAD, spread(*subsets))
    return cluster, await replicas(cluster, count, bus)


@pytest.mark.parametrize("named", [True, False], ids=["with names", "without names"])
@pytest.mark.parametrize(
    ("limits", "pods"), [((60, 70), 200), ((10, 5), 12), ((3, 3), 5), ((100, 100), 150), ((7, 1), 30)]
)
async def test_subsets_are_filled_in_order(limits: tuple[int, int], pods: int, *, named: bool) -> None:
    """Give no subset too many pods, and no later one a pod while an earlier one has room."""
    cluster, worlds = await distant(subset("a", limits[0]), subset("b", limits[1]), subset("c"))
    found = Counter(mark(one)["subset"] for one in await storm(worlds, pods, named=named))
    a = min(limits[0], pods)
    b = min(limits[1], pods - a)
    assert found == Counter({"a": a, "b": b, "c": pods - a - b})
    await rest(worlds[0])
    assert ahead(worlds[0]) == 0
    assert worlds[0].missing() == [limits[0] - a, limits[1] - b, -1]
    assert cluster.objects[WORKLOAD_SPREAD.plural, NAMESPACE, "ws"]["status"].keys() == {"versionedSubsetStatuses"}


async def test_pods_need_not_wait_for_writes() -> None:
    cluster, worlds = await distant(subset("a", 1000), subset("b"))
    await storm(worlds, 200)
    assert len(cluster.writes) < 40
    await rest(worlds[0])
    assert len(worlds[0].book()["a"]["creatingPods"]) == 200


async def test_a_replica_without_places_asks_one_that_has_some() -> None:
    cluster, (first, second) = await distant(subset("a", 100), subset("b"))
    await storm([first], 20)
    cluster.before_write = raising(ApiError(500, "", "no"))  # neither waits for a write
    found = await second.create(pod("late"))
    assert mark(found)["subset"] == "a"
    assert found["metadata"]["annotations"][PLACE]
    cluster.before_write = lambda: None
    await storm([first], 1, begin=20)
    await rest(first)
    assert "late" in first.book()["a"]["creatingPods"]
    assert first.missing() == [100 - 22, -1]


async def test_a_subset_is_full_once_no_replica_has_a_place() -> None:
    """Let no pod wait at the end of a subset, and none go to the next one too early."""
    cluster, worlds = await distant(subset("a", 60), subset("b"), count=3)
    begun = worlds[0].clock.monotonic()
    found = Counter(mark(one)["subset"] for one in await storm(worlds, 100))
    assert found == {"a": 60, "b": 40}
    assert worlds[0].clock.monotonic() - begun < 100 * PACE + AWAITED_SECONDS / 10
    await rest(worlds[0])
    assert len(cluster.writes) < 30


@pytest.mark.parametrize("away", ["from the beginning", "in the middle"])
async def test_subsets_are_filled_in_order_while_the_bus_is_away(away: str) -> None:
    bus = DistantBus()
    cluster, worlds = await distant(subset("a", 60), subset("b", 70), subset("c"), bus=bus)
    bus.connected = away != "from the beginning"
    cluster.after_write = lambda: setattr(bus, "connected", False)
    found = Counter(mark(one)["subset"] for one in await storm(worlds, 200))
    assert found == {"a": 60, "b": 70, "c": 70}
    await rest(worlds[0])
    assert (ahead(worlds[0]), worlds[0].missing()) == (0, [0, 0, -1])


async def test_a_replica_that_does_not_answer_is_not_asked_again_and_again() -> None:
    bus = DistantBus()
    _, (first, second) = await distant(subset("a", 40), subset("b"), bus=bus)
    await storm([first], 20)
    bus.servers[0].healthy = False
    bus.asked.clear()
    await storm([second], 10, begin=20)
    assert 1 <= len(bus.asked) <= 10  # not with each look at the book


@pytest.mark.parametrize(("named", "lost"), [(True, 0), (False, 1)], ids=["with a name", "without"])
async def test_an_answer_that_is_lost_costs_no_more_than_a_place_until_its_time_out(named: bool, lost: int) -> None:
    bus = DistantBus()
    _, (first, second) = await distant(subset("a", 100), subset("b"), bus=bus)
    await storm([first], 20)
    bus.lose_answers = 1
    assert mark(await second.create(pod("late" if named else "")))["subset"] == "a"
    assert bus.lose_answers == 0
    await rest(first)
    assert ahead(first) == 0
    assert first.missing() == [100 - 21 - lost, -1]
    assert len(first.book()["a"]["creatingPods"]) == 21 + lost


async def test_a_lender_whose_write_is_slow_is_waited_for() -> None:
    """The borrower's watch shows the places before the lender has its own answer."""

    class SlowToAnswer(Distant):
        async def patch(self, *call: Any, **more: Any) -> bytes:
            answer = await super().patch(*call, **more)
            await turns(200)
            return answer

    cluster = SlowToAnswer()
    cluster.put(WORKLOAD_SPREAD, spread(subset("a", 40), subset("b")))
    first, second = await replicas(cluster, 2)
    storming = asyncio.create_task(storm([first], 15))
    async with asyncio.timeout(10):
        while not (ahead(first) and first.missing()[0] == 0):
            await turns(1)
    await turns(10)
    assert mark(await second.create(pod("late")))["subset"] == "a"
    await storming


async def test_a_book_that_changes_meanwhile_is_asked_about_again() -> None:
    """The refusal was about an earlier status, and another request has seen the newer one."""
    bus = DistantBus()
    cluster, (first, second) = await distant(subset("a", 100), subset("b"), bus=bus)
    await storm([first], 20)
    serving, answers = bus.servers[0].on_request, [0]

    async def none_before_the_change(message: Message) -> bytes | None:
        answers[0] += 1
        if answers[0] > 1:
            return await serving(message)
        stored = copy.deepcopy(first.stored())
        stored["status"]["versionedSubsetStatuses"]["versionIgnored"][0]["missingReplicas"] = 0
        cluster.put(WORKLOAD_SPREAD, stored)
        await turns(20)  # both watches show it
        assert mark(await second.create(pod("other")))["subset"] == "a"
        return b"{}"

    bus.servers[0].on_request = none_before_the_change
    assert mark(await second.create(pod("late")))["subset"] == "a"
    assert answers == [3]


@pytest.mark.parametrize("answer", [b"", b"[]", b'{"subset": 3}'])
async def test_an_answer_that_cannot_be_read_is_none(answer: bytes) -> None:
    bus = DistantBus()
    _, (first, second) = await distant(subset("a", 100), subset("b"), bus=bus)
    await storm([first], 20)

    async def nonsense(message: Message) -> bytes:
        del message
        return answer

    bus.servers[0].on_request = nonsense
    assert mark(await second.create(pod("late")))["subset"] == "a"


async def test_only_names_of_replicas_become_part_of_subjects() -> None:
    """Take no other text of a status into a subject: users may write anything there."""
    bus = DistantBus()
    cluster, (world,) = await distant(subset("a", 10), subset("b"), count=1, bus=bus)
    await world.create(pod("p"))
    stored = copy.deepcopy(world.stored())
    (entry, _) = stored["status"]["versionedSubsetStatuses"]["versionIgnored"]
    entry["creatingPods"] |= dict.fromkeys(("ahead/>/x", "ahead/a b/x", "ahead//x", "ahead/"), "2026-01-01T00:00:00Z")
    entry["missingReplicas"] = 0
    cluster.put(WORKLOAD_SPREAD, stored)
    await turns(20)
    assert mark(await world.create(pod("q")))["subset"] == "b"
    assert bus.asked == []


async def test_few_pods_take_nothing_ahead() -> None:
    cluster, (world,) = await distant(subset("a", 10), subset("b"), count=1)
    for number in range(2 * MANY):
        await world.create(pod(f"p{number}"))
        await world.clock.sleep(1)
    assert len(cluster.writes) == 2 * MANY
    assert list(world.book()["a"]["creatingPods"]) == [f"p{number}" for number in range(2 * MANY)]


async def test_an_unlimited_subset_waits_for_nothing() -> None:
    cluster, (world,) = await distant(subset("a"), subset("b", 3), count=1)
    await world.create(pod("p"))
    cluster.writes.clear()
    cluster.before_write = raising(ApiError(500, "", "no"))
    assert {mark(one)["subset"] for one in await storm([world], 20)} == {"a"}
    assert cluster.writes == []


async def test_how_pods_are_known() -> None:
    """Write the annotation as the reference does without places that are taken ahead (workloadspread.md §5.4)."""
    _, (world,) = await distant(subset("a", 100), subset("b"), count=1)
    named, unnamed = await storm([world], 20), await storm([world], 20, named=False)
    assert all(mark(one).keys() == {"name", "subset"} for one in named)
    tokens = {one["metadata"]["annotations"][PLACE] for one in named if PLACE in one["metadata"]["annotations"]}
    assert len(tokens) > 10
    assert all(PLACE not in one["metadata"]["annotations"] for one in unnamed)
    await rest(world)
    assert all(str(UUID(mark(one)["uid"])) == mark(one)["uid"] for one in unnamed)
    names = {one["metadata"]["name"] for one in named} | {mark(one)["uid"] for one in unnamed}
    assert set(world.book()["a"]["creatingPods"]) == names


async def test_a_retried_call_takes_no_second_place() -> None:
    """Follow example W11, before and after the book names the pod."""
    _, worlds = await distant(subset("a", 100), subset("b"))
    await storm(worlds[:1], 20)
    places = [await worlds[replica].create(pod("p19")) for replica in (0, 1)]
    assert [mark(one)["subset"] for one in places] == ["a", "a"]
    assert len({one["metadata"]["annotations"][PLACE] for one in places}) == 1
    await rest(worlds[0])
    assert mark(await worlds[0].create(pod("p19")))["subset"] == "a"
    assert mark(await worlds[1].create(pod("p19")))["subset"] == "a"
    await rest(worlds[0])
    assert worlds[0].missing() == [80, -1]


async def test_a_replica_that_dies_is_waited_for_no_longer_than_necessary() -> None:
    bus = DistantBus()
    _, (first, second) = await distant(subset("a", 100), subset("b"), bus=bus)
    others = asyncio.all_tasks()
    await storm([first], 30)
    assert ahead(first)
    bus.servers[0].healthy = False
    for task in asyncio.all_tasks() - others:
        task.cancel()  # what it was about to do
    await second.clock.sleep(AHEAD_SECONDS)
    left, begun = first.missing()[0], second.clock.monotonic()
    found = Counter(mark(one)["subset"] for one in await storm([second], left + 3, begin=100))
    assert found == {"a": left, "b": 3}
    assert second.clock.monotonic() - begun < (left + 3) * PACE + AWAITED_SECONDS + 1
    await second.clock.sleep(FRESH_SECONDS)
    begun = second.clock.monotonic()
    assert mark(await second.create(pod("late")))["subset"] == "b"
    assert second.clock.monotonic() - begun < AWAITED_SECONDS


async def test_places_of_a_write_whose_outcome_was_unknown_are_returned() -> None:
    cluster, (world,) = await distant(subset("a", 100), subset("b"), count=1)
    broken: list[Any] = []

    def lose() -> None:
        if ahead(world) and not broken:
            broken.append(True)
            raise Unreachable("timed out")

    cluster.after_write = lose
    await storm([world], 40)
    await rest(world)
    assert broken
    assert ahead(world) == 0
    assert world.missing() == [60, -1]


async def test_who_may_not_write_takes_nothing_ahead() -> None:
    cluster, (world,) = await distant(subset("a", 100), subset("b"), count=1)
    cluster.before_write = raising(ApiError(403, "Forbidden", "no"))
    answers = await asyncio.gather(*(world.admission(pod(f"p{number}")) for number in range(10)))
    assert {(one.allowed, one.message) for one in answers} == {(False, "no")}
    await rest(world)
    cluster.before_write = lambda: None
    assert mark(await world.create(pod("q")))["subset"] == "a"


async def test_what_cannot_be_returned_has_its_time_out() -> None:
    """Stop trying where the replica may not write."""
    cluster, (world,) = await distant(subset("a", 100), subset("b"), count=1)
    await storm([world], 20)
    tries: list[float] = []

    def refuse() -> None:
        tries.append(world.clock.time)
        raise ApiError(403, "Forbidden", "no")

    cluster.before_write = refuse
    await world.clock.sleep(10)
    assert len(tries) == 1
    assert ahead(world)


async def test_a_place_that_could_not_be_written_down_is_forgotten() -> None:
    cluster, (world,) = await distant(subset("a", 100), subset("b"), count=1)
    await storm([world], 20)
    cluster.before_write = raising(ApiError(403, "Forbidden", "no"))
    assert mark(await world.create(pod("late")))["subset"] == "a"  # from what was taken ahead
    await rest(world)
    await world.clock.sleep(FRESH_SECONDS)
    cluster.before_write = lambda: None
    stored = copy.deepcopy(world.stored())
    (entry, _) = stored["status"]["versionedSubsetStatuses"]["versionIgnored"]
    entry |= {"creatingPods": {}, "missingReplicas": 0}  # the controller has dropped the place, and others took it
    cluster.put(WORKLOAD_SPREAD, stored)
    await turns(20)
    assert mark(await world.create(pod("late")))["subset"] == "b"


async def test_who_ends_returns_what_is_left() -> None:
    _, worlds = await distant(subset("a", 100), subset("b"))
    await storm(worlds, 30)
    assert ahead(worlds[0])
    for world in worlds:
        await world.spreads.close()
    assert ahead(worlds[0]) == 0
    assert worlds[0].missing() == [70, -1]
