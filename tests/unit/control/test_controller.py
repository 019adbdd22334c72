"""The control loop: back-off, unknown outcomes, status writes, timers, objects that cannot be planned."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import POD
from flotilla_common.control.controller import LONGEST_REST, SETTLED_REST, Controller
from flotilla_common.control.events import Recorder
from flotilla_common.control.executor import Executor
from flotilla_common.control.journal import Journal
from flotilla_common.control.keystate import STATUS_INTERVAL, Key, Memory
from flotilla_common.control.limiter import Limiter
from flotilla_common.control.plan import Create, Intent, ObjectRef, Patch, PatchType, Plan, Reason, Stage, State
from flotilla_common.control.queue import Backoff
from flotilla_common.control.shards import Shards
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.mirror.table import VersionsWentBack
from tests.unit.control.fakes import ManualClock, MemoryStore, NoChance, ScriptedApi, SilentBus, next_due


class Snap(msgspec.Struct):
    subject: ObjectRef
    memory: Memory


Planner = Callable[[Snap, datetime], Plan]


class Loop:
    """A controller around one object, and everything that it touched."""

    def __init__(self, planner: Planner, workers: int = 3, *, idle_first: bool = False) -> None:
        self.api, self.clock, self.bus = ScriptedApi(), ManualClock(), SilentBus()
        self.snaps: list[Snap] = []
        self.rereads: list[Key] = []
        self.exists = True
        self.shards = Shards(api=self.api, clock=self.clock, service="t", namespace="s", identity="r")
        recorder = Recorder(self.api, self.clock, NoChance(), "test-controller")
        journal = Journal(self.bus, self.clock, "test", "r")
        self.limiter = Limiter(self.clock)
        executor = Executor(
            api=self.api,
            store=MemoryStore(self.api),
            clock=self.clock,
            limiter=self.limiter,
            recorder=recorder,
            journal=journal,
        )
        self.controller: Controller[Snap] = Controller(
            name="test-controller",
            resource=CLONE_SET,
            gather=self._gather,
            subject_of=lambda key: ObjectRef(CLONE_SET, *key, uid="u"),
            plan=planner,
            reread=self._reread,
            executor=executor,
            journal=journal,
            shards=self.shards,
            clock=self.clock,
            entropy=NoChance(),
            workers=workers,
            idle_first=idle_first,
        )

    def _gather(self, key: Key, memory: Memory) -> Snap | None:
        if not self.exists:
            return None
        self.snaps.append(Snap(ObjectRef(CLONE_SET, *key, uid="u"), memory))
        return self.snaps[-1]

    async def _reread(self, key: Key) -> None:
        self.rereads.append(key)

    async def start(self) -> None:
        await self.shards.tick()
        await asyncio.gather(*([self.shards._taking] if self.shards._taking else []))
        self.api.requests.clear()

    async def settle(self) -> None:
        """Let the workers do everything that is ready now."""
        task = asyncio.create_task(self.controller.run())
        for _ in range(200):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def once(self) -> None:
        self.controller.enqueue("default", "sample")
        await self.settle()

    @property
    def writes(self) -> list[tuple[str, str]]:
        return [(verb, name) for verb, name, _ in self.api.requests if verb != "replace" and "flotilla" not in name]


def create(name: str = "pod") -> Stage:
    action = Create(
        resource=POD,
        namespace="default",
        name=name,
        intent=Intent.CREATE,
        cause="t",
        phase="scale",
        body={"metadata": {"name": name}},
    )
    return Stage(chains=((action,),))


def status(**body: object) -> Patch:
    return Patch(
        resource=CLONE_SET,
        namespace="default",
        name="sample",
        intent=Intent.UPDATE,
        cause="status",
        body=body,
        patch_type=PatchType.MERGE,
    )


async def loop_of(planner: Planner, workers: int = 3, *, idle_first: bool = False) -> Loop:
    loop = Loop(planner, workers, idle_first=idle_first)
    await loop.start()
    return loop


async def test_a_plan_is_carried_out_and_its_reasons_are_published() -> None:
    reason = Reason(State.DONE, "Complete", "all is well")
    loop = await loop_of(lambda *_: Plan(stages=(create(),), reasons=(reason,)))
    await loop.once()
    assert loop.writes == [("create", "pod")]
    why = [message for subject, message in loop.bus.published if subject == "why.v1.clonesets.default.sample"]
    assert [entry["code"] for entry in why[0]["reasons"]] == ["Complete"]


async def test_unchanged_reasons_are_not_repeated() -> None:
    loop = await loop_of(lambda *_: Plan(reasons=(Reason(State.DONE, "Complete", "all is well"),)))
    await loop.once()
    loop.clock.advance(5)
    await loop.once()
    assert sum(subject.startswith("why") for subject, _ in loop.bus.published) == 1


async def test_after_an_unknown_outcome_the_owner_is_read_before_the_next_plan() -> None:
    loop = await loop_of(lambda *_: Plan(stages=(create(),)))
    loop.api.answers = [Unreachable("timed out")]
    await loop.once()
    loop.clock.advance(1)
    await loop.settle()
    assert loop.rereads == [("default", "sample")]
    assert loop.snaps[1].memory.unconfirmed == ((POD, "pod"),)


async def test_failures_are_handed_to_the_next_pass() -> None:
    loop = await loop_of(lambda *_: Plan(stages=(create(),)))
    loop.api.answers = [ApiError(403, "Forbidden", "quota")]
    await loop.once()
    loop.clock.advance(1)
    await loop.settle()
    assert loop.snaps[1].memory.failures == {"scale": "quota"}


async def test_status_writes_that_only_change_counts_are_merged() -> None:
    counts = iter(range(1000))
    loop = await loop_of(lambda *_: Plan(status=status(replicas=next(counts))))
    for _ in range(5):
        await loop.once()
    assert loop.writes == [("patch", "sample")]
    loop.clock.advance(STATUS_INTERVAL)
    await loop.settle()
    assert loop.writes == [("patch", "sample")] * 2


async def test_counts_that_met_a_conflict_keep_their_turn() -> None:
    """Other frequent writers of the status would otherwise delay them for long."""
    loop = await loop_of(lambda *_: Plan(status=status()))
    loop.api.answers = [ApiError(409, "Conflict", "modified")]
    await loop.once()
    due = next_due(loop.controller.queue)
    assert due is not None
    loop.clock.advance(due - loop.clock.monotonic())
    await loop.settle()
    assert len([verb for verb, _ in loop.writes if verb == "patch"]) == 2
    assert due - 1000.0 < STATUS_INTERVAL


async def test_an_urgent_status_tells_what_came_of_the_writes_before_it() -> None:
    plans = iter([Plan(stages=(create("a"),), status=status(), urgent_status=True)])
    follow = Plan(stages=(create("b"),), status=status(replicas=1), urgent_status=True)
    loop = await loop_of(lambda *_: next(plans, follow))
    await loop.once()
    assert loop.writes[:3] == [("create", "a"), ("patch", "sample"), ("create", "b")]


async def test_a_status_that_the_last_pass_owed_may_be_right_by_now() -> None:
    plans = iter([Plan(stages=(create("a"),), status=status(), urgent_status=True), Plan()])
    loop = await loop_of(lambda *_: next(plans, Plan(status=status(), urgent_status=True, stages=(create("b"),))))
    await loop.once()
    assert loop.writes == [("create", "a")]
    await loop.once()
    assert loop.writes[1] == ("create", "b")


async def test_an_urgent_status_does_not_wait() -> None:
    loop = await loop_of(lambda *_: Plan(status=status(), urgent_status=True))
    for _ in range(3):
        await loop.once()
    assert len(loop.writes) == 3


async def test_writes_after_the_status_wait_for_a_pass_without_one() -> None:
    plans = iter([Plan(status=status(), after_status=(create("late"),)), Plan(after_status=(create("late"),))])
    loop = await loop_of(lambda *_: next(plans))
    await loop.once()
    assert loop.writes == [("patch", "sample")]
    await loop.once()
    assert loop.writes[1:] == [("create", "late")]


async def test_the_plan_sets_the_alarm() -> None:
    loop = await loop_of(lambda _, now: Plan(wake_at=now + timedelta(seconds=6)))
    await loop.once()
    loop.clock.advance(5)
    await loop.settle()
    assert len(loop.snaps) == 1
    loop.clock.advance(2)
    await loop.settle()
    assert len(loop.snaps) == 2


async def test_the_alarm_of_a_plan_goes_off_before_a_longer_back_off() -> None:
    loop = await loop_of(lambda _, now: Plan(wake_at=now + timedelta(seconds=6), errors=(("plan", "impossible"),)))
    loop.controller.queue._backoff = Backoff(base=100.0)
    await loop.once()
    loop.clock.advance(5)
    await loop.settle()
    assert len(loop.snaps) == 1
    loop.clock.advance(2)
    await loop.settle()
    assert len(loop.snaps) == 2


@pytest.mark.parametrize(
    ("step", "passed", "looks"),
    [
        pytest.param(3600, 0, 2, id="forward: it is late already"),
        pytest.param(-3600, 7, 2, id="back: it wakes early, and goes to sleep again"),
        pytest.param(4, 1, 1, id="forward: not yet"),
        pytest.param(4, 3, 2, id="forward: sooner"),
    ],
)
async def test_an_alarm_follows_the_wall_clock(step: float, passed: float, looks: int) -> None:
    loop = await loop_of(lambda snap, now: Plan(wake_at=now + timedelta(seconds=6)))
    await loop.once()
    loop.clock.wrong = step
    loop.controller.clock_was_set()
    loop.clock.advance(passed)
    await loop.settle()
    assert len(loop.snaps) == looks


async def test_what_a_plan_notes_is_there_in_the_next_pass() -> None:
    loop = await loop_of(lambda _, now: Plan(notes={"floor": "now"}))
    await loop.once()
    await loop.once()
    assert [snap.memory.notes for snap in loop.snaps] == [{}, {"floor": "now"}]


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize(
    ("answer", "rest"), [(0.005, 0.02), (0.03, 0.12), (10, LONGEST_REST)], ids=["idle", "busy", "hardly alive"]
)
async def test_after_a_pass_without_writes_an_object_rests_longer_the_busier_the_apiserver_is(
    answer: float, rest: float, *, settled: bool
) -> None:
    rest *= SETTLED_REST if settled else 1
    loop = await loop_of(lambda snap, now: Plan(settled=settled))
    for _ in range(100):
        loop.limiter.answered(answer)
    await loop.once()
    loop.clock.advance(rest * 0.9)
    await loop.once()
    assert len(loop.snaps) == 1
    loop.clock.advance(rest * 0.2)
    await loop.settle()
    assert len(loop.snaps) == 2


async def test_what_was_written_is_followed_up_at_once() -> None:
    loop = await loop_of(lambda snap, now: Plan(stages=(create(),)) if len(loop.snaps) == 1 else Plan())
    loop.limiter.answered(10)
    await loop.once()
    await loop.once()
    assert len(loop.snaps) == 2


async def test_an_object_that_cannot_be_planned_says_so_and_stops_nobody() -> None:
    def planner(snap: Snap, _: datetime) -> Plan:
        if snap.subject.name == "bad":
            raise ValueError("no such thing")
        return Plan(stages=(create(),))

    loop = await loop_of(planner)
    loop.controller.enqueue("default", "bad")
    await loop.once()
    assert ("create", "pod") in loop.writes
    why = [message for subject, message in loop.bus.published if subject == "why.v1.clonesets.default.bad"]
    assert "no such thing" in why[0]["reasons"][0]["message"]


async def test_a_replica_without_the_lease_plans_nothing() -> None:
    loop = await loop_of(lambda *_: Plan(stages=(create(),)))
    loop.controller.queue.add(("default", "sample"))
    loop.clock.advance(60)
    await loop.settle()
    assert loop.writes == []


async def test_what_is_gone_is_forgotten() -> None:
    loop = await loop_of(lambda *_: Plan(stages=(create(),)))
    loop.exists = False
    await loop.once()
    assert loop.writes == []
    assert next_due(loop.controller.queue) is None


@pytest.mark.parametrize("retry_after", [0.0, 7.0])
async def test_the_apiservers_wish_to_wait_is_respected(retry_after: float) -> None:
    loop = await loop_of(lambda *_: Plan(stages=(create(),)))
    loop.api.answers = [ApiError(429, "TooManyRequests", "slow down", retry_after)]
    await loop.once()
    due = next_due(loop.controller.queue)
    assert due is not None
    assert due - loop.clock.monotonic() == pytest.approx(max(retry_after, 0.005))


@pytest.mark.parametrize(
    ("error", "longest"),
    [
        pytest.param(ApiError(409, "Conflict", "modified"), 1.0, id="others got on"),
        pytest.param(ApiError(429, "TooManyRequests", "busy"), 1.0, id="busy"),
        pytest.param(ApiError(500, "InternalError", "broken"), 2.56, id="trouble"),
    ],
)
async def test_what_passes_by_itself_is_not_put_off_for_ever_longer(error: ApiError, longest: float) -> None:
    loop = await loop_of(lambda *_: Plan(stages=(create(),)))
    waits: list[float] = []
    for _ in range(10):
        loop.api.answers = [error]
        await loop.once()
        due = next_due(loop.controller.queue)
        assert due is not None
        waits.append(due - loop.clock.monotonic())
        loop.clock.advance(waits[-1])
    assert waits[:7] == pytest.approx([0.005 * 2**step for step in range(7)])
    assert waits[-1] == pytest.approx(longest)


async def test_what_was_refused_for_long_does_not_put_off_what_meets_a_busy_apiserver() -> None:
    loop = await loop_of(lambda *_: Plan(stages=(create(),)))
    waits: list[float] = []
    for answer in (*[ApiError(403, "Forbidden", "exceeded quota")] * 10, ApiError(429, "TooManyRequests", "busy")):
        loop.api.answers = [answer]
        await loop.once()
        due = next_due(loop.controller.queue)
        assert due is not None
        waits.append(due - loop.clock.monotonic())
        loop.clock.advance(waits[-1])
    assert waits[-2:] == pytest.approx([0.005 * 2**9, 1.0])


async def test_a_stopped_controller_finishes_what_is_on_its_way_and_records_all_of_it() -> None:
    loop = await loop_of(lambda *_: Plan(stages=(create("first"), create("second"))))
    answer, create_at_once = asyncio.Event(), loop.api.create

    async def create_slowly(*arguments: Any, **members: Any) -> bytes:
        body = await create_at_once(*arguments, **members)
        await answer.wait()
        return body

    loop.api.create = create_slowly  # type: ignore[method-assign]
    loop.controller.enqueue("default", "sample")
    work = asyncio.create_task(loop.controller.run())
    for _ in range(20):
        await asyncio.sleep(0)
    loop.shards.retire()
    loop.controller.stop()
    loop.controller.enqueue("default", "other")
    answer.set()
    await asyncio.wait_for(work, 1)
    assert loop.writes == [("create", "first")]
    acts = [(message["name"], message["outcome"]) for subject, message in loop.bus.published if "act" in subject]
    assert acts == [("first", "Ok"), ("second", "Fenced")]


async def never(*_: Any, **__: Any) -> bytes:
    """Send a request that is not answered."""
    return await asyncio.get_running_loop().create_future()


def creates(count: int, slow_start: int) -> Plan:
    chains = tuple(create(f"pod-{number}").chains[0] for number in range(count))
    return Plan(stages=(Stage(chains=chains, slow_start=slow_start),))


@pytest.mark.parametrize(
    ("plan", "begun"),
    [(creates(3, 1), 1), (creates(1, 1), 1), (creates(3, 0), 2)],
    ids=["three, one after the other", "the first of many", "three at once"],
)
async def test_fewer_objects_are_begun_while_one_creates_its_pods_in_slow_start(plan: Plan, begun: int) -> None:
    loop = await loop_of(lambda *_: plan, workers=10)  # two of them begin

    loop.api.create = never  # type: ignore[method-assign]
    for name in ("a", "b", "c"):
        loop.controller.enqueue("default", name)
    await loop.settle()
    assert [snap.subject.name for snap in loop.snaps] == ["a", "b", "c"][:begun]


async def test_objects_whose_pods_are_refused_keep_nobody_from_beginning() -> None:
    loop = await loop_of(lambda *_: creates(2, 1), workers=3)  # one of them begins
    names = [f"refused-{number}" for number in range(5)]
    loop.api.answers = [ApiError(403, "Forbidden", "exceeded quota")] * len(names)
    for name in (*names, "last"):
        loop.controller.enqueue("default", name)
    await loop.settle()
    assert [snap.subject.name for snap in loop.snaps] == [*names, "last"]


@pytest.mark.parametrize(("idle_first", "begun"), [(True, ["a", "b", "c"]), (False, ["sample", "a"])])
async def test_what_is_due_at_a_set_time_does_not_wait_for_what_has_begun(idle_first: bool, begun: list[str]) -> None:
    loop = await loop_of(lambda *_: creates(1, 0), workers=3, idle_first=idle_first)
    await loop.once()
    loop.snaps.clear()

    loop.api.create = never  # type: ignore[method-assign]
    for name in ("sample", "a", "b", "c"):
        loop.controller.enqueue("default", name)
    await loop.settle()
    assert sorted(snap.subject.name for snap in loop.snaps) == sorted(begun)


def break_one(loop: Loop, error: Exception) -> None:
    """Have the pass over an object fail, beside that over a good one."""
    gather = loop.controller._gather

    def breaks(key: Key, memory: Memory) -> Snap | None:
        if key[1] == "bad":
            raise error
        return gather(key, memory)

    loop.controller._gather = breaks
    loop.controller.enqueue("default", "bad")


async def test_an_object_that_cannot_be_gathered_is_reported_and_stops_nobody() -> None:
    loop = await loop_of(lambda *_: Plan(stages=(create(),)), workers=1)
    break_one(loop, KeyError("nodeName"))
    await loop.once()
    assert ("create", "pod") in loop.writes
    (said,) = (message for subject, message in loop.bus.published if subject == "why.v1.clonesets.default.bad")
    assert [entry["message"] for entry in said["reasons"]] == ["planning failed: KeyError: 'nodeName'"]
    assert next_due(loop.controller.queue) is not None


async def test_a_worker_outlives_whatever_one_object_provokes() -> None:
    loop = await loop_of(lambda *_: Plan(stages=(create(),)), workers=1)
    loop.controller._subject_of = lambda key: None
    break_one(loop, KeyError("nodeName"))
    await loop.once()
    assert ("create", "pod") in loop.writes


async def test_a_restored_etcd_is_not_one_objects_business() -> None:
    """Detected when the outcome of a write is looked up: no cached version is valid any more."""
    loop = await loop_of(lambda *_: Plan(stages=(create(),)), workers=1)

    async def reread(key: Key) -> None:
        raise VersionsWentBack

    loop.controller._reread = reread
    loop.api.answers = [Unreachable("no answer")]
    await loop.once()
    loop.clock.advance(1)
    with pytest.raises(ExceptionGroup) as ended:
        await loop.controller.run()
    assert ended.group_contains(VersionsWentBack)
