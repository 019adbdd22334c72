"""Places are counted right under any events between reading and writing the status (workloadspread.md §7)."""

import asyncio
import copy
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.workloadspread.book import token_of
from flotilla_common.api.kinds.workloadspread.types import PLACE, WORKLOAD_SPREAD
from flotilla_common.api.resources import Resource
from flotilla_common.bus.interface import BusError
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.kube.reflector import HeadMeta
from flotilla_webhook.cache import Cache
from flotilla_webhook.status_writer import WRITE_TIMEOUT_SECONDS
from flotilla_webhook.taking_ahead import IDLE_SECONDS
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json
from tests.unit.webhook.spread_world import NAMESPACE, World, mark, pod, spread, subset

CONFLICT = ApiError(409, "Conflict", "the object has been modified")
THERE_AND_BACK = 3
"""Turns of the loop that a call takes in each direction. One is about half a millisecond."""


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class Distant(FakeApi):
    """An apiserver that answers after a while, and notifies watches a while later."""

    def __init__(self, lag: int = THERE_AND_BACK, watched: Resource = WORKLOAD_SPREAD) -> None:
        """Begin with an empty cluster. `lag`: turns until a watch receives a write."""
        super().__init__()
        self.lag = lag
        self.watched = watched
        self.watching: list[Cache[Any]] = []
        self.conflicts = 0
        self.before_write: Callable[[], None] = lambda: None
        self.after_write: Callable[[], None] = lambda: None
        self._told: asyncio.Task[None] | None = None

    def put(self, resource: Resource, document: Json) -> Json:
        stored = super().put(resource, document)
        if resource == self.watched and self.watching:
            self._told = asyncio.ensure_future(self._tell(self._told, msgspec.json.encode(stored)))
        return stored

    async def _tell(self, earlier: asyncio.Task[None] | None, item: bytes) -> None:
        await turns(self.lag)
        if earlier is not None:
            await earlier
        metadata = msgspec.json.decode(item)["metadata"]
        head = HeadMeta(
            namespace=metadata["namespace"], name=metadata["name"], resource_version=metadata["resourceVersion"]
        )
        for cache in self.watching:
            await cache.event("MODIFIED", head, msgspec.Raw(item))

    async def get(self, resource: Resource, namespace: str, name: str, subresource: str = "") -> bytes:
        await turns(THERE_AND_BACK)
        answer = await super().get(resource, namespace, name, subresource)
        await turns(THERE_AND_BACK)
        return answer

    async def patch(self, *call: Any, **more: Any) -> bytes:
        await turns(THERE_AND_BACK)
        try:
            self.before_write()
            answer = await super().patch(*call, **more)
        except ApiError as failure:
            self.conflicts += failure.code == 409
            await turns(THERE_AND_BACK)
            raise
        self.after_write()
        await turns(THERE_AND_BACK)
        return answer


class DistantBus(FakeBus):
    """A bus between replicas, whose answers come after a while."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.lose_answers = 0

    async def request(self, subject: str, data: bytes, timeout: float) -> bytes:
        self.asked.append(subject)
        await turns(THERE_AND_BACK)
        answer = await super().request(subject, data, timeout)
        if self.lose_answers:
            self.lose_answers -= 1
            raise BusError("no reply in time")
        await turns(THERE_AND_BACK)
        return answer


class SlowClock(FakeClock):
    """Time passes with the turns of the loop."""

    TURN = 0.0005

    def __init__(self) -> None:
        super().__init__()
        self._passing = asyncio.ensure_future(self._pass())

    async def _pass(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.time += self.TURN

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        await turns(1 + int(max(seconds, 0) / self.TURN))


async def replicas(cluster: Distant, count: int = 2, bus: FakeBus | None = None) -> list[World]:
    """Return `count` webhooks, with a watch each, and a bus between them."""
    bus = bus or DistantBus()
    worlds = [await World(cluster=cluster, clock=SlowClock(), bus=bus).watch() for _ in range(count)]
    for world in worlds:
        await world.spreads.serve()
    cluster.watching = [world.spreads.cache for world in worlds]
    return worlds


async def insist(world: World, document: Json, refused: list[str]) -> Json:
    """Create the pod as its controller would: again and again."""
    while True:
        answer = await world.admission(document)
        if answer.allowed:
            return mark(document | {"metadata": document["metadata"] | _annotations(answer.patch)})
        refused.append(answer.message)


def _annotations(patch: Any) -> Json:
    """Return the annotations that the patch adds."""
    added = [one.value for one in patch if one.path == "/metadata/annotations"]
    return {"annotations": added[0]} if added else {}


@pytest.mark.parametrize("lag", [THERE_AND_BACK, 10 * THERE_AND_BACK], ids=["a quick watch", "a slow watch"])
@pytest.mark.parametrize("named", [True, False], ids=["with names", "without names"])
async def test_a_storm_over_two_replicas(named: bool, lag: int) -> None:
    """Give no more than maxReplicas, and lose no place."""
    cluster, refused = Distant(lag), list[str]()
    cluster.put(WORKLOAD_SPREAD, spread(subset("a", 60), subset("b", 70), subset("c")))
    worlds = await replicas(cluster)
    found = await asyncio.gather(
        *(insist(worlds[number % 2], pod(f"p{number}" if named else ""), refused) for number in range(200))
    )
    assert Counter(one["subset"] for one in found) == {"a": 60, "b": 70, "c": 70}
    assert worlds[0].missing() == [0, 0, -1]
    keys = {name: set(entry.get("creatingPods", {})) for name, entry in worlds[0].book().items()}
    if named:
        assert {len(names) for names in keys.values()} == {60, 70, 0}
    else:
        assert keys == {name: {one["uid"] for one in found if one["subset"] == name and "uid" in one} for name in keys}
    assert refused == []
    assert len(cluster.writes) <= 20  # those that come during a write share the next


async def test_no_replica_is_left_without_a_turn() -> None:
    """Give each of three replicas its turn: each always has something to write, and sees the others' writes late."""
    cluster, refused = Distant(10 * THERE_AND_BACK), list[str]()
    cluster.put(WORKLOAD_SPREAD, spread(subset("a", 500), subset("b")))
    creating: list[asyncio.Future[Json]] = []
    worlds = await replicas(cluster, 3)
    for number in range(600):
        creating.append(asyncio.ensure_future(insist(worlds[number % 3], pod(f"p{number}"), refused)))
        await turns(1)
    found = Counter(one["subset"] for one in await asyncio.gather(*creating))
    assert (found, refused) == ({"a": 500, "b": 100}, [])
    assert worlds[0].clock.time < WRITE_TIMEOUT_SECONDS


async def test_two_replicas_and_one_place() -> None:
    """Follow example W6."""
    cluster = Distant()
    cluster.put(WORKLOAD_SPREAD, spread(subset("a", 1), subset("b")))
    first, second = await replicas(cluster)
    found = await asyncio.gather(first.create(pod("p")), second.create(pod("q")))
    assert sorted(mark(one)["subset"] for one in found) == ["a", "b"]
    assert cluster.conflicts == 1
    assert first.missing() == [0, -1]


async def test_churn_over_two_replicas() -> None:
    """Let pods come and go at once: at rest each place is either free, or held by one pod."""
    cluster, refused = Distant(), list[str]()
    cluster.put(WORKLOAD_SPREAD, spread(subset("a", 50), subset("b", 50)))
    worlds = await replicas(cluster)

    async def live(number: int) -> tuple[str, bool]:
        """Return where the pod was, and whether it stays."""
        document = pod(f"p{number}")
        here, there = worlds[number % 2], worlds[(number + 1) % 2]
        stored = await here.create(document)
        found = mark(stored)["subset"]
        if number % 2:
            return found, True
        cluster.put(WORKLOAD_SPREAD, seen(here.stored(), stored))
        await turns(2 * THERE_AND_BACK)  # until the watches have received it
        assert (await there.delete(stored)).allowed
        return found, False

    lives = await asyncio.gather(*(live(number) for number in range(80)))
    staying = Counter(found for found, stays in lives if stays)
    left = Counter(found for found, stays in lives if not stays)
    await worlds[0].clock.sleep(2 * IDLE_SECONDS)
    book = worlds[0].book()
    for name in ("a", "b"):
        assert book[name]["missingReplicas"] == 50 - staying[name]
        assert len(book[name].get("deletingPods", {})) == left[name]
    assert refused == []


def seen(stored: Json, pod: Json) -> Json:
    """Return the WorkloadSpread after its controller has seen the pod, without the pod's entry."""
    changed: Json = copy.deepcopy(stored)
    known = {pod["metadata"]["name"], pod["metadata"]["annotations"].get(PLACE)}
    for entry in changed["status"]["versionedSubsetStatuses"]["versionIgnored"]:
        creating = entry.get("creatingPods", {})
        for key in [key for key in creating if token_of(key) in known]:
            del creating[key]
    return changed


async def test_a_choice_is_made_anew_after_a_conflict() -> None:
    """The choice is not only written again: the place is gone meanwhile."""
    cluster = Distant()
    cluster.put(WORKLOAD_SPREAD, spread(subset("a", 1), subset("b", 1)))
    (world,) = await replicas(cluster, 1)
    cluster.watching = []
    cluster.before_write = once(lambda: cluster.put(WORKLOAD_SPREAD, with_book(world.stored(), a=0, b=1)))
    assert await world.places("p") == "b"
    assert world.missing() == [0, 0]


def with_book(stored: Json, **missing: int) -> Json:
    book = [{"name": name, "replicas": 0, "missingReplicas": number} for name, number in missing.items()]
    return stored | {"status": {"versionedSubsetStatuses": {"versionIgnored": book}}}


def once(action: Callable[[], object]) -> Callable[[], None]:
    """Do it the first time only."""
    done: list[object] = []

    def act() -> None:
        if not done:
            done.append(None)
            action()

    return act


def raising(failure: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise failure

    return fail


async def world_of(*subsets: Json) -> tuple[Distant, World]:
    """Return one replica, whose watch is quiet."""
    cluster = Distant()
    cluster.put(WORKLOAD_SPREAD, spread(*subsets))
    (world,) = await replicas(cluster, 1)
    cluster.watching = []
    return cluster, world


async def test_what_the_watch_has_shown_meanwhile_is_not_read_again() -> None:
    cluster, world = await world_of(subset("a", 1), subset("b"))

    def write_and_show() -> None:
        newer = cluster.put(WORKLOAD_SPREAD, with_book(world.stored(), a=0, b=-1))
        world.spreads.cache.take(msgspec.json.encode(newer))

    cluster.before_write = once(write_and_show)
    assert await world.places("p") == "b"
    assert cluster.gets == []


async def test_one_that_is_always_too_late_gives_up() -> None:
    cluster, world = await world_of(subset("a", 9))
    cluster.before_write = raising(CONFLICT)
    answer = await world.admission(pod("p"))
    assert (answer.code, answer.allowed) == (500, False)
    assert WRITE_TIMEOUT_SECONDS < world.clock.time < 2 * WRITE_TIMEOUT_SECONDS
    assert cluster.conflicts < 100

    cluster.before_write = lambda: None
    assert await world.places("p") == "a"  # what the next one finds is right
    assert world.missing() == [8]


@pytest.mark.parametrize("written", [True, False], ids=["it arrived", "it did not"])
@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
async def test_nobody_knows_whether_a_write_arrived(written: bool, named: bool) -> None:
    """Find the pod's place in the status, and take no second one."""
    cluster, world = await world_of(subset("a", 2), subset("b"))
    lost = once(raising(Unreachable("timed out")))
    if written:
        cluster.after_write = lost
    else:
        cluster.before_write = lost
    placed = mark(await world.create(pod("p" if named else "")))
    assert placed["subset"] == "a"
    assert ("uid" in placed) != named
    assert world.missing()[0] == 1
    others = [mark(await world.create(pod(f"q{number}")))["subset"] for number in range(2)]
    assert others == ["a", "b"]


async def test_an_apiserver_that_answers_nobody_refuses_the_pod() -> None:
    cluster, world = await world_of(subset("a", 2), subset("b"))
    cluster.before_write = raising(Unreachable("timed out"))
    answer = await world.admission(pod("p"))
    assert (answer.code, answer.message) == (500, "timed out")


async def test_a_write_that_a_retry_of_the_client_finds_done() -> None:
    """Break the connection: the client sends the write again, and meets a conflict with itself."""
    cluster, world = await world_of(subset("a", 2), subset("b"))
    cluster.after_write = once(raising(CONFLICT))
    found = mark(await world.create(pod()))
    assert found["subset"] == "a"
    assert list(world.book()["a"]["creatingPods"]) == [found["uid"]]
    assert world.missing() == [1, -1]


@pytest.mark.parametrize("code", [404, 409], ids=["gone when it is written", "gone when it is read again"])
async def test_a_workload_spread_that_is_gone_leaves_the_pod_as_it_is(code: int) -> None:
    cluster, world = await world_of(subset("a", 2))

    def vanish() -> None:
        cluster.objects.pop((WORKLOAD_SPREAD.plural, NAMESPACE, "ws"), None)
        raise ApiError(code, "", "")

    cluster.before_write = vanish
    assert await world.create(pod("p")) == pod("p")
    assert (await world.delete(await marked(world))).allowed


async def marked(world: World, name: str = "p", place: str = "a") -> Json:
    value = msgspec.json.encode({"name": "ws", "subset": place}).decode()
    return pod(name, annotations={"apps.kruise.io/matched-workloadspread": value})


async def test_one_that_is_gone_needs_no_rules_any_more() -> None:
    cluster, world = await world_of(subset("a", 2))
    del cluster.objects[WORKLOAD_SPREAD.plural, NAMESPACE, "ws"]
    assert await world.create(pod("p")) == pod("p")
    assert await world.spreads.selection.rules() == []


async def test_a_namesake_is_no_stale_copy() -> None:
    """Follow example W22: deleted and created again, before the watch shows it."""
    cluster, world = await world_of(subset("a", 2), subset("b"))
    assert await world.places("p") == "a"
    again = spread(subset("a", 2), subset("b"))
    again["metadata"]["uid"] = "another"
    cluster.put(WORKLOAD_SPREAD, again)
    assert await world.places("q") == "a"
    assert list(world.book()["a"]["creatingPods"]) == ["q"]


async def test_one_that_cannot_be_read_any_more_refuses_the_pods() -> None:
    cluster, world = await world_of(subset("a", 2))
    cluster.put(WORKLOAD_SPREAD, world.stored() | {"spec": {"subsets": 3}})
    answer = await world.admission(pod("p"))
    assert (answer.code, answer.allowed) == (500, False)


@pytest.mark.parametrize(("code", "repeated"), [(422, False), (429, True), (500, True), (503, True)])
async def test_a_write_that_fails_is_repeated_where_that_may_help(code: int, repeated: bool) -> None:
    cluster, world = await world_of(subset("a", 2))
    cluster.before_write = once(raising(ApiError(code, "", "no")))
    answers = await asyncio.gather(*(world.admission(pod(name)) for name in ("p", "q")))
    assert [one.allowed for one in answers] == [repeated, repeated]
    assert repeated or {one.code for one in answers} == {500}
    assert await world.places("p", "q", "r") == "aa_"


async def test_a_fault_of_ours_leaves_nobody_waiting() -> None:
    cluster, world = await world_of(subset("a", 2))
    cluster.before_write = once(raising(RuntimeError("a fault")))
    with pytest.raises(RuntimeError, match="a fault"):
        await asyncio.wait_for(world.admission(pod("p")), 5)
    assert await world.places("q") == "a"


async def test_one_that_cannot_be_decided_harms_no_other() -> None:
    """The number of all pods was not read because there was a status entry, which its controller then closed."""
    cluster, world = await world_of(subset("a", "50%"), subset("b"))
    clone_set = {"metadata": {"name": "web", "namespace": NAMESPACE}, "spec": {"replicas": 4}}
    cluster.put(Resource("apps.kruise.io", "v1beta1", "clonesets", "CloneSet"), clone_set)
    cluster.put(WORKLOAD_SPREAD, with_book(world.stored(), a=1, b=-1))
    await world.watch()
    cluster.before_write = once(lambda: cluster.put(WORKLOAD_SPREAD, world.stored() | {"status": {}}))
    answer = await world.admission(pod("p"))
    assert (answer.code, answer.message) == (500, "the book of WorkloadSpread ws was just closed")
    assert await world.places("p") == "a"
    assert world.missing() == [1, -1]


async def test_a_caller_that_has_gone_takes_no_place() -> None:
    _, world = await world_of(subset("a", 2))
    first = asyncio.ensure_future(world.create(pod("p")))
    await turns(2)
    second = asyncio.ensure_future(world.create(pod("q")))
    await turns(1)
    second.cancel()
    with suppress(asyncio.CancelledError):
        await second
    assert mark(await first)["subset"] == "a"
    await turns(20)
    assert list(world.book()["a"]["creatingPods"]) == ["p"]
