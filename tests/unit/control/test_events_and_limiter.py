"""Events are merged and bounded; the write limit follows the apiserver's answers."""

import asyncio

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import Resource
from flotilla_common.control.events import BACKLOG, BURST, COMBINED, DISTINCT, LONGEST_REST, REST_SHARE, Recorder
from flotilla_common.control.limiter import INITIAL, LEAST, LONGEST_PAUSE, MOST, Limiter
from flotilla_common.control.metrics import EVENTS_DROPPED
from flotilla_common.control.plan import Event, ObjectRef
from tests.support.fake_clock import FakeClock
from tests.unit.control.fakes import ManualClock, NoChance, ScriptedApi

SUBJECT = ObjectRef(CLONE_SET, "default", "sample", "u", "7", 1)


async def written(*texts: str) -> ScriptedApi:
    api = ScriptedApi()
    recorder = Recorder(api, ManualClock(), NoChance(), "cloneset-controller")
    task = asyncio.create_task(recorder.run())
    for text in texts:
        recorder.record(SUBJECT, Event(reason="SuccessfulCreate", message=text))
        for _ in range(5):
            await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return api


async def test_an_event_says_what_users_expect() -> None:
    api = await written("succeed to create pod sample-abcde")
    ((_, _, body),) = api.requests
    assert body["involvedObject"] == {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "CloneSet",
        "namespace": "default",
        "name": "sample",
        "uid": "u",
        "resourceVersion": "7",
    }
    assert (body["type"], body["reason"], body["message"]) == (
        "Normal",
        "SuccessfulCreate",
        "succeed to create pod sample-abcde",
    )
    assert body["source"] == {"component": "cloneset-controller"}


async def test_events_of_one_second_are_listed_in_their_order() -> None:
    """`kubectl describe` sorts by second, and then by name."""
    api = await written(*(f"pod {index}" for index in range(5)))
    assert sorted(api.requests, key=lambda request: request[2]["metadata"]["name"]) == api.requests


async def test_the_same_event_again_raises_its_count() -> None:
    api = await written("a", "a", "a")
    assert [(verb, body["count"]) for verb, _, body in api.requests] == [("create", 1), ("patch", 2), ("patch", 3)]


async def test_many_similar_events_are_combined() -> None:
    api = await written(*(f"pod {index}" for index in range(DISTINCT + 3)))
    creates = [body["message"] for verb, _, body in api.requests if verb == "create"]
    assert len(creates) == DISTINCT + 1
    assert str(creates[-1]).startswith(COMBINED)


async def test_what_is_said_again_before_it_was_written_costs_no_write() -> None:
    before = EVENTS_DROPPED._value.get()
    api = ScriptedApi()
    recorder = Recorder(api, ManualClock(), NoChance(), "cloneset-controller")
    for index in range(DISTINCT + 100):
        recorder.record(SUBJECT, Event(reason="SuccessfulCreate", message=f"pod {index}"))
    await recorder.flush()
    combined = api.requests[-1][2]
    assert (len(api.requests), combined["count"]) == (DISTINCT + 1, 100)
    assert combined["message"] == f"{COMBINED}pod {DISTINCT + 99}"
    assert EVENTS_DROPPED._value.get() == before


async def test_the_oldest_event_makes_room() -> None:
    before = EVENTS_DROPPED._value.get()
    api = ScriptedApi()
    recorder = Recorder(api, ManualClock(), NoChance(), "cloneset-controller")
    for index in range(BACKLOG + 1):
        subject = ObjectRef(CLONE_SET, "default", f"sample-{index}", f"u{index}", "7", 1)
        recorder.record(subject, Event(reason="SuccessfulCreate", message="succeed to create pod"))
    await recorder.flush()
    names = [body["involvedObject"]["name"] for _, _, body in api.requests]
    assert names == [f"sample-{index}" for index in range(1, BACKLOG + 1)]
    assert EVENTS_DROPPED._value.get() == before + 1


async def test_one_object_cannot_flood_the_apiserver() -> None:
    api = await written(*["a"] * 1000)
    assert len(api.requests) == BURST


class SlowApi(ScriptedApi):
    """An apiserver that takes its time to create something."""

    def __init__(self, clock: ManualClock, seconds: float) -> None:
        super().__init__()
        self._clock, self._seconds = clock, seconds
        self.at: list[float] = []

    async def create(self, resource: Resource, namespace: str, body: bytes, *, dry_run: bool = False) -> bytes:
        self.at.append(self._clock.elapsed)
        self._clock.advance(self._seconds)
        return await super().create(resource, namespace, body, dry_run=dry_run)


@pytest.mark.parametrize(
    ("took", "apart"), [(0.003, 0.033), (0.05, 0.55), (20, 20 + LONGEST_REST)], ids=["idle", "busy", "hardly alive"]
)
async def test_events_wait_while_the_apiserver_is_busy(took: float, apart: float) -> None:
    assert REST_SHARE == 10
    clock = ManualClock()
    api = SlowApi(clock, took)
    recorder = Recorder(api, clock, NoChance(), "cloneset-controller")
    for text in ("a", "b", "c"):
        recorder.record(SUBJECT, Event(reason="SuccessfulCreate", message=text))
    task = asyncio.create_task(recorder.run())
    for _ in range(20):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    first, second, third = api.at
    assert [second - first, third - second] == pytest.approx([apart, apart])


async def test_warnings_go_first() -> None:
    api = ScriptedApi()
    recorder = Recorder(api, ManualClock(), NoChance(), "cloneset-controller")
    for text in ("a", "b"):
        recorder.record(SUBJECT, Event(reason="SuccessfulCreate", message=text))
        recorder.record(SUBJECT, Event(reason="FailedCreate", message=f"no {text}", warning=True))
    await recorder.flush()
    assert [body["message"] for _, _, body in api.requests] == ["no a", "no b", "a", "b"]


class LongHold(FakeClock):
    """A hold that ends when the test ends it."""

    def __init__(self) -> None:
        super().__init__()
        self.over = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        await self.over.wait()
        await super().sleep(seconds)


async def test_the_limit_grows_with_good_answers_and_shrinks_with_429() -> None:
    clock = ManualClock()
    limiter = Limiter(clock)
    assert int(limiter._limit) == INITIAL
    for _ in range(5000):
        limiter.answered(0.005)
    assert int(limiter._limit) == MOST
    limiter.throttled()
    limiter.throttled()  # of the same moment: counts once
    assert int(limiter._limit) == MOST / 2
    for _ in range(20):
        clock.advance(2)
        limiter.throttled()
    assert int(limiter._limit) == LEAST


@pytest.mark.parametrize(
    ("retry_after", "held"), [(0.0, 0.0), (3.0, 3.0), (3600.0, LONGEST_PAUSE)], ids=["no wish", "a wish", "nonsense"]
)
async def test_nobody_writes_before_the_apiserver_wants_it(retry_after: float, held: float) -> None:
    clock = FakeClock()
    limiter = Limiter(clock)
    limiter.throttled(retry_after)
    limiter.throttled(retry_after / 2)  # a shorter wish does not shorten the longer one

    async def begins() -> float:
        async with limiter.slot():
            return clock.monotonic()

    assert all(at >= held for at in await asyncio.gather(*(begins() for _ in range(5))))
    assert clock.monotonic() < held + 1


async def test_who_gives_up_while_writes_are_held_back_leaves_the_slot_to_others() -> None:
    clock = LongHold()
    limiter = Limiter(clock, initial=1)
    async with limiter.slot():
        first, second = (asyncio.create_task(limiter.slot().__aenter__()) for _ in range(2))
        await asyncio.sleep(0)
        limiter.throttled(1)
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    clock.over.set()
    async with asyncio.timeout(1):
        await second
    assert limiter._running == 1


async def test_answers_far_slower_than_the_best_shrink_the_limit() -> None:
    clock = ManualClock()
    limiter = Limiter(clock)
    limiter.answered(0.01)
    limiter.answered(2.0)
    assert int(limiter._limit) < INITIAL


async def test_no_more_than_the_limit_run_at_once() -> None:
    limiter = Limiter(ManualClock(), initial=2)
    most = 0

    async def work() -> None:
        nonlocal most
        async with limiter.slot():
            most = max(most, limiter._running)
            await asyncio.sleep(0)

    await asyncio.gather(*(work() for _ in range(10)))
    assert most == 2
    assert limiter._running == 0


async def test_creates_have_low_priority_and_get_every_fourth_slot() -> None:
    limiter = Limiter(ManualClock(), initial=1)
    order: list[str] = []

    async def work(name: str, *, low_priority: bool) -> None:
        async with limiter.slot(low_priority=low_priority):
            order.append(name)

    async with limiter.slot():
        tasks = [asyncio.create_task(work(f"create {number}", low_priority=True)) for number in range(3)]
        tasks += [asyncio.create_task(work(f"patch {number}", low_priority=False)) for number in range(5)]
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert order == [
        "patch 0", "patch 1", "patch 2", "create 0", "patch 3", "patch 4", "create 1", "create 2",
    ]  # fmt: skip


@pytest.mark.parametrize("low_priority", [False, True])
async def test_who_comes_back_at_once_does_not_overtake_who_waits(low_priority: bool) -> None:
    limiter = Limiter(ManualClock(), initial=1)
    order: list[str] = []

    async def wait() -> None:
        async with limiter.slot(low_priority=low_priority):
            order.append("who waited")

    async with limiter.slot():
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
    async with limiter.slot():
        order.append("who came back")
    await waiting
    assert order == ["who waited", "who came back"]


async def test_a_waiter_that_is_cancelled_as_it_gets_a_slot_hands_it_on() -> None:
    limiter = Limiter(ManualClock(), initial=1)
    began: list[str] = []

    async def work(name: str) -> None:
        async with limiter.slot():
            began.append(name)

    async with limiter.slot():
        first, second = (asyncio.create_task(work(name)) for name in ("first", "second"))
        await asyncio.sleep(0)
    first.cancel()
    async with asyncio.timeout(1):
        await asyncio.gather(first, second, return_exceptions=True)
    assert began == ["second"]
    assert limiter._running == 0


async def test_a_cancelled_waiter_does_not_keep_a_slot() -> None:
    limiter = Limiter(ManualClock(), initial=1)
    async with limiter.slot():
        waiting = asyncio.create_task(limiter.slot().__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(1), limiter.slot():
        assert limiter._running == 1
