"""The executor: stages, chains, fences, outcomes, and what it records from every answer."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import msgspec
import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import POD
from flotilla_common.control.events import Recorder
from flotilla_common.control.executor import Envelope, Executor, Report, classify
from flotilla_common.control.fence import Fence
from flotilla_common.control.journal import Journal
from flotilla_common.control.limiter import Limiter
from flotilla_common.control.plan import Create, Delete, Event, Intent, ObjectRef, OutcomeKind, Patch, Plan, Stage
from flotilla_common.kube.interface import ApiError, Unreachable
from tests.unit.control.fakes import ManualClock, MemoryStore, NoChance, ScriptedApi, SilentBus

OWNER = "uid-owner"
SUBJECT = ObjectRef(CLONE_SET, "default", "sample", OWNER)


def fence(may_send: Callable[[], bool]) -> Fence:
    """Return the fence of a lease that is always renewed."""
    return Fence(may_send, lambda: 60.0)


class World:
    def __init__(self) -> None:
        self.api = ScriptedApi()
        self.clock = ManualClock()
        self.bus = SilentBus()
        self.store = MemoryStore(self.api)
        self.recorder = Recorder(self.api, self.clock, NoChance(), "cloneset-controller")
        self.limiter = Limiter(self.clock)
        self.executor = Executor(
            api=self.api,
            store=self.store,
            clock=self.clock,
            limiter=self.limiter,
            recorder=self.recorder,
            journal=Journal(self.bus, self.clock, "cloneset", "r1"),
        )
        self.valid = True

    async def run(self, *stages: Stage) -> Report:
        return await self.executor.run(SUBJECT, Plan(stages=stages), fence(lambda: self.valid), "trace")


@pytest.fixture
def world() -> World:
    return World()


def create(name: str, **extra: object) -> Create:
    owner = {"uid": OWNER, "controller": True}
    body = {"metadata": {"name": name, "ownerReferences": [owner]}}
    return Create(
        resource=POD,
        namespace="default",
        name=name,
        intent=Intent.CREATE,
        cause="scale up",
        phase="scale",
        body=body,
        **extra,
    )


def patch(name: str, **extra: object) -> Patch:
    return Patch(
        resource=POD,
        namespace="default",
        name=name,
        intent=Intent.UPDATE,
        cause="test",
        phase="update",
        body={},
        **extra,
    )


def stage(*actions: Create | Patch | Delete, slow_start: int = 0) -> Stage:
    return Stage(chains=tuple((action,) for action in actions), slow_start=slow_start)


async def test_replies_go_into_the_mirror(world: World) -> None:
    report = await world.run(stage(create("a"), create("b")))
    assert world.store.taken == ["a", "b"]
    assert not report.failed


async def test_a_wish_to_wait_holds_for_all_objects(world: World) -> None:
    """Other writers wait as well; requests in flight continue."""
    world.api.answers = [ApiError(429, "TooManyRequests", "slow down", 7.0)]
    refused = await world.run(stage(create("a")))
    assert refused.retry_after == 7.0
    before = world.clock.elapsed
    await world.executor.run(
        ObjectRef(CLONE_SET, "default", "other", "uid-other"),
        Plan(stages=(stage(create("b")),)),
        fence(lambda: True),
        "trace",
    )
    assert world.clock.elapsed - before == pytest.approx(7)
    assert world.store.taken == ["b"]


async def test_slow_start_stops_after_a_bad_batch(world: World) -> None:
    world.api.answers = [None, None, ApiError(403, "Forbidden", "exceeded quota")]
    report = await world.run(stage(*(create(name) for name in "abcdefg"), slow_start=1))
    assert sorted(world.store.taken) == ["a", "b"]
    assert [name for _, name, _ in world.api.requests] == ["a", "b", "c"]
    assert report.failures == {"scale": "exceeded quota"}


async def test_a_chain_ends_at_its_first_failure_and_others_go_on(world: World) -> None:
    world.api.answers = [ApiError(422, "Invalid", "bad claim")]
    await world.run(Stage(chains=((create("claim"), create("pod")), (create("other"),))))
    assert world.store.taken == ["other"]


async def test_a_failed_stage_keeps_later_stages_from_running(world: World) -> None:
    world.api.answers = [ApiError(422, "Invalid", "no")]
    await world.run(stage(create("a")), stage(create("b")))
    assert world.store.taken == []


async def test_a_stage_begins_with_the_one_beside_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    both = asyncio.Barrier(2)
    answer = world.api.create

    async def together(*words: object, **named: object) -> bytes:
        await both.wait()
        return await answer(*words, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(world.api, "create", together)
    refresh = Stage(chains=((create("a"),),), beside_next=True)
    await asyncio.wait_for(world.run(refresh, stage(create("b"))), 5)
    assert sorted(world.store.taken) == ["a", "b"]


async def test_a_failure_beside_a_stage_keeps_later_ones_from_running(world: World) -> None:
    world.api.answers = [ApiError(422, "Invalid", "no")]
    await world.run(Stage(chains=((create("a"),),), beside_next=True), stage(create("b")), stage(create("c")))
    assert world.store.taken == ["b"]


async def test_the_last_stage_may_name_a_next_one(world: World) -> None:
    await world.run(Stage(chains=((create("a"),),), beside_next=True))
    assert world.store.taken == ["a"]


async def test_after_previous_demands_the_version_that_the_chain_left_behind(world: World) -> None:
    await world.run(stage(create("a")))
    await world.run(Stage(chains=((patch("a"), patch("a", after_previous=True)),)))
    (_, _, first), (_, _, second) = world.api.requests[1:]
    assert "metadata" not in first
    assert second["metadata"] == {"resourceVersion": "3"}
    assert world.api.version == 4


async def test_conflict_reads_the_object(world: World) -> None:
    await world.run(stage(create("a")))
    report = await world.run(stage(patch("a", resource_version="1")))
    assert report.counts == {OutcomeKind.CONFLICT: 1}
    assert world.store.reads == ["a"]
    assert report.failures == {}


async def test_the_record_names_the_version_that_was_read_after_a_refusal(world: World) -> None:
    """A replay needs it: the next pass is based on it, whenever the bus brings it."""
    await world.run(stage(create("a")))
    version = str(world.api.version)
    world.api.answers = [None, None, ApiError(404, "NotFound", "lost not found")]
    await world.run(stage(patch("a", resource_version="0"), create("a"), patch("lost")))
    acts = [(act["outcome"], act["resourceVersion"]) for _, act in world.bus.published[1:]]
    assert acts == [("Conflict", version), ("Ok", version), ("NotFound", "")]


async def test_our_own_earlier_create_counts_as_done(world: World) -> None:
    await world.run(stage(create("a")))
    report = await world.run(stage(create("a")))
    assert report.counts == {OutcomeKind.OK: 1}


async def test_a_foreign_namesake_is_a_failure(world: World) -> None:
    world.api.objects["a"] = {"metadata": {"name": "a", "uid": "x", "resourceVersion": "1"}}
    report = await world.run(stage(create("a")))
    assert report.counts == {OutcomeKind.ALREADY_EXISTS: 1}
    assert "already exists" in report.failures["scale"]


async def test_a_reply_that_is_no_object_leaves_the_outcome_unknown(world: World) -> None:
    async def page(*_: object, **__: object) -> bytes:
        return b"<html>try again</html>"

    world.api.patch = page
    world.store.written = unreadable
    report = await world.run(stage(patch("a")))
    assert report.counts == {OutcomeKind.UNKNOWN: 1}
    assert report.unknown


def unreadable(*_: object) -> None:
    """Raise like a mirror that cannot decode the object."""


@pytest.mark.parametrize(
    "error",
    [Unreachable("timed out"), ApiError(500, "InternalError", "boom"), ApiError(504, "Timeout", "late")],
    ids=["no answer", "500", "504"],
)
async def test_no_clear_answer_is_unknown_and_names_the_create(world: World, error: Exception) -> None:
    world.api.answers = [error]
    report = await world.run(stage(create("a")))
    assert report.unknown
    assert report.unconfirmed == [(POD, "a")]


async def test_a_fenced_replica_sends_nothing(world: World) -> None:
    world.valid = False
    report = await world.run(stage(create("a")))
    assert world.api.requests == []
    assert report.counts == {OutcomeKind.FENCED: 1}


async def test_a_write_that_waited_too_long_for_its_turn_is_not_sent(world: World) -> None:
    """A replica may be paused while its writes queue for a place, and lose its lease meanwhile."""
    async with AsyncExitStack() as others:
        for _ in range(int(world.limiter._limit)):
            await others.enter_async_context(world.limiter.slot())
        run = asyncio.create_task(world.run(stage(create("a"))))
        await asyncio.sleep(0)
        assert not run.done()
        world.valid = False
    report = await run
    assert world.api.requests == []
    assert report.counts == {OutcomeKind.FENCED: 1}


async def test_the_fence_is_checked_before_every_write(world: World) -> None:
    answers = iter([True, False])
    plan = Plan(stages=(Stage(chains=((create("a"), create("b")),)),))
    await world.executor.run(SUBJECT, plan, fence(lambda: next(answers)), "trace")
    assert world.store.taken == ["a"]


async def test_a_write_does_not_outlive_the_right_to_send_it(world: World) -> None:
    """It may wait for a token, a connection, or the apiserver; another replica plans meanwhile."""
    waiting = asyncio.Event()

    async def never(*_: object, **__: object) -> bytes:
        waiting.set()
        await asyncio.Event().wait()
        return b""

    left = [0.01, 0.01, -1.0]  # renewed once, then no more
    world.api.create = never  # type: ignore[method-assign]
    plan = Plan(stages=(stage(create("a")),))
    report = await world.executor.run(SUBJECT, plan, Fence(lambda: True, lambda: left.pop(0)), "trace")
    assert waiting.is_set()
    assert left == []
    assert report.unknown
    assert report.unconfirmed == [(POD, "a")]


async def test_deleting_what_is_gone_is_fine(world: World) -> None:
    gone = Delete(resource=POD, namespace="default", name="a", intent=Intent.DELETE, cause="scale down", uid="u")
    report = await world.run(stage(gone), stage(create("b")))
    assert world.store.gone == ["a"]
    assert world.store.taken == ["b"]
    assert not report.failed


async def test_every_write_is_told_on_the_bus(world: World) -> None:
    world.api.answers = [ApiError(403, "Forbidden", "quota")]
    pods = tuple(f"pod-{number}" for number in range(12))
    await world.run(stage(create("a", revision="sample-new", pods=pods)))
    ((subject, message),) = world.bus.published
    assert subject == "act.v1.cloneset.pods.default.a"
    assert (message["action"], message["outcome"], message["message"]) == ("create", "Denied", "quota")
    assert (message["intent"], message["cause"], message["revision"]) == ("create", "scale up", "sample-new")
    assert message["pods"] == [*pods[:10]]
    assert message["owner"] == {"kind": "CloneSet", "namespace": "default", "name": "sample"}


async def test_users_hear_of_success_and_failure(world: World) -> None:
    told: list[tuple[str, str]] = []
    world.recorder.record = lambda subject, event, error="": told.append((event.reason, event.text(error)))
    success = Event(reason="SuccessfulCreate", message="succeed to create pod a")
    failure = Event(reason="FailedCreate", message="failed to create pod: ", after=", pod: {}", warning=True)
    world.api.answers = [ApiError(403, "Forbidden", "quota"), None]
    for _ in range(2):
        await world.run(stage(create("a", on_success=success, on_failure=failure)))
    assert told == [
        ("FailedCreate", "failed to create pod: quota, pod: {}"),
        ("SuccessfulCreate", "succeed to create pod a"),
    ]


@pytest.mark.parametrize(
    ("code", "reason", "message", "kind"),
    [
        (409, "AlreadyExists", "", OutcomeKind.ALREADY_EXISTS),
        (409, "Conflict", "", OutcomeKind.CONFLICT),
        (404, "NotFound", "", OutcomeKind.NOT_FOUND),
        (410, "Gone", "", OutcomeKind.GONE),
        (422, "Invalid", "", OutcomeKind.INVALID),
        (400, "BadRequest", "", OutcomeKind.INVALID),
        (403, "Forbidden", "", OutcomeKind.DENIED),
        (429, "TooManyRequests", "", OutcomeKind.THROTTLED),
        (500, "", 'admission webhook "x" denied the request: no', OutcomeKind.DENIED),
        (500, "InternalError", 'failed calling webhook "x": failed to call webhook: Post: EOF', OutcomeKind.DENIED),
        (500, "InternalError", "conversion webhook for a/v1, Kind=A failed: Post: EOF", OutcomeKind.UNKNOWN),
        (500, "InternalError", "etcd timeout", OutcomeKind.UNKNOWN),
        (503, "ServiceUnavailable", "", OutcomeKind.UNKNOWN),
    ],
)
def test_classification(code: int, reason: str, message: str, kind: OutcomeKind) -> None:
    assert classify(ApiError(code, reason, message)) is kind


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"details": {"causes": [{"reason": "FieldValueInvalid", "field": "metadata.uid"}]}}', OutcomeKind.CONFLICT),
        (b'{"details": {"causes": [{"reason": "FieldValueInvalid", "field": "spec"}]}}', OutcomeKind.INVALID),
        (b'{"details": {}}', OutcomeKind.INVALID),
        (b"a page", OutcomeKind.INVALID),
    ],
    ids=["another object has the name", "another field", "no causes", "no Status"],
)
def test_a_patch_that_meets_a_namesake_is_a_conflict(body: bytes, kind: OutcomeKind) -> None:
    assert classify(ApiError(422, "Invalid", "Pod is invalid", body=body)) is kind


async def test_users_are_told_in_the_order_of_the_plan(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Independent of the order of the answers: events of pods that are updated at once are in their intended order."""
    turns = {name: asyncio.Event() for name in "abc"}
    answer = world.api.create

    async def late(*words: object, **named: object) -> bytes:
        name = msgspec.json.decode(words[2], type=Envelope).metadata.name  # type: ignore[arg-type]
        if name in turns:
            await turns[name].wait()
        return await answer(*words, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(world.api, "create", late)
    told = [create(name, on_success=Event(reason="SuccessfulCreate", message=name)) for name in "abc"]
    running = asyncio.create_task(world.run(stage(*told)))
    for name in "cba":
        turns[name].set()
        await asyncio.sleep(0)
    await running
    assert [event.message for _, event, _ in world.recorder._backlog.values()] == ["a", "b", "c"]
