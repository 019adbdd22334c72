"""Tools by which planners write their plans: draft, waits, wording, writes."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.resources import POD, SECRET
from flotilla_common.control.plan import Create, Delete, Event, Intent, Patch, PatchType, Reason, Stage, State
from flotilla_common.control.planbuilder import Deadlines, PlanBuilder, refused
from flotilla_common.control.text import first_names, named, nodes_word, pods_word
from flotilla_common.control.writes import create_of, delete_finished, delete_of, patch_of, status_patch

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
META = ObjectMeta(name="web", namespace="ns", uid="u", resource_version="7")
FAILED = Event(reason="Failed", message="no: ", warning=True)


def pod(name: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, uid=f"uid-{name}"))


@pytest.mark.parametrize(
    ("names", "total", "text"),
    [
        ("", 0, ""),
        ("a", 0, "a"),
        ("abcde", 0, "a, b, c, d, e"),
        ("abcdef", 0, "a, b, c, d, e and 1 more"),
        ("abcdefg", 0, "a, b, c, d, e and 2 more"),
        ("ab", 9, "a, b and 7 more"),
        ("abcdef", 3, "a, b, c, d, e and 1 more"),
    ],
)
def test_the_first_are_named_and_the_rest_counted(names: str, total: int, text: str) -> None:
    assert named(list(names), total) == text
    assert named([pod(name) for name in names], total) == text
    assert first_names([pod(name) for name in names]) == tuple(names[:5])


def test_one_is_singular() -> None:
    assert [pods_word(number) for number in (0, 1, 2)] == ["0 pods", "1 pod", "2 pods"]
    assert [nodes_word(number) for number in (1, 7)] == ["1 node", "7 nodes"]


def test_the_earliest_moment_is_waited_for() -> None:
    deadlines = Deadlines()
    deadlines.until(None)
    assert deadlines.next is None
    deadlines.not_before(NOW)
    assert deadlines.next is None
    later, sooner = NOW + timedelta(seconds=9), NOW + timedelta(seconds=2)
    for moment in (later, sooner, later):
        deadlines.until(moment)
    assert deadlines.next == sooner
    deadlines.not_before(NOW + timedelta(seconds=1))
    assert deadlines.next == sooner
    deadlines.not_before(NOW + timedelta(seconds=3))
    assert deadlines.next == NOW + timedelta(seconds=3)


@pytest.mark.parametrize(("seconds", "passed"), [(-1, True), (0, True), (1, False)])
def test_a_moment_that_has_come_is_not_waited_for(seconds: float, passed: bool) -> None:
    deadlines, moment = Deadlines(), NOW + timedelta(seconds=seconds)
    assert deadlines.passed(moment, NOW) is passed
    assert deadlines.next == (None if passed else moment)


def test_a_draft_becomes_a_plan() -> None:
    builder, delete = PlanBuilder(), delete_of(POD, META, Intent.DELETE, "x")
    builder.stage([(delete,), ()], slow_start=2)
    builder.stage([()])
    builder.stage([(delete,)], stop_on_failure=False, at=0)
    builder.reason(State.WAITING, "Waiting", "for it", [pod(name) for name in "abcdefg"])
    builder.numbers |= {"b": 2}
    builder.deadlines.until(NOW)
    plan = builder.plan(numbers={"a": 1, "b": 0}, settled=True)
    assert plan.stages == (Stage(chains=((delete,),), stop_on_failure=False), Stage(chains=((delete,),), slow_start=2))
    assert plan.reasons == (Reason(State.WAITING, "Waiting", "for it", tuple("abcde")),)
    assert (plan.numbers, plan.wake_at, plan.settled, plan.status) == ({"a": 1, "b": 2}, NOW, True, None)


@pytest.mark.parametrize(
    ("reason", "sentence", "encoded"),
    [
        (
            Reason(State.WAITING, "Waiting", "for it", ("a",)),
            "waiting: for it",
            b'{"state":"waiting","code":"Waiting","message":"for it","objects":["a"]}',
        ),
        (
            Reason(State.STUCK, "FailedPods", "1 pod failed", symptom=True),
            "1 pod failed",
            b'{"state":"stuck","code":"FailedPods","message":"1 pod failed","objects":[],"symptom":true}',
        ),
    ],
)
def test_a_reason_as_people_and_as_scripts_read_it(reason: Reason, sentence: str, encoded: bytes) -> None:
    assert reason.sentence == sentence
    assert msgspec.json.encode(reason) == encoded
    assert msgspec.json.decode(encoded, type=Reason) == reason


def test_what_cannot_be_planned_is_a_reason_and_an_event() -> None:
    plan = refused("InvalidSpec", "nothing is done: no")
    assert plan.reasons == (Reason(State.STUCK, "InvalidSpec", "nothing is done: no"),)
    assert plan.events == (Event(reason="InvalidSpec", message="nothing is done: no", warning=True),)


def test_an_object_is_written_once() -> None:
    builder = PlanBuilder()
    assert [builder.touch(pod(name)) for name in "aba"] == [True, True, False]


def test_writes_name_the_object_that_was_planned_with() -> None:
    body = {"metadata": {"name": "web"}, "data": {}}
    assert create_of(SECRET, body, Intent.CREATE, "new") == Create(
        resource=SECRET, namespace="", name="web", intent=Intent.CREATE, cause="new", body=body
    )
    assert patch_of(POD, META, Intent.UPDATE, "x", body=body, phase="scale", on_failure=FAILED) == Patch(
        resource=POD,
        namespace="ns",
        name="web",
        uid="u",
        intent=Intent.UPDATE,
        cause="x",
        phase="scale",
        body=body,
        patch_type=PatchType.MERGE,
        on_failure=FAILED,
    )
    assert patch_of(POD, META, Intent.UPDATE, "x", body=body, on_version=True).resource_version == "7"
    plain = Delete(
        resource=POD, namespace="ns", name="web", uid="u", intent=Intent.DELETE, cause="x", on_failure=FAILED
    )
    assert delete_of(POD, META, Intent.DELETE, "x", on_failure=FAILED) == plain
    assert delete_of(POD, META, Intent.DELETE, "x", on_version=True).resource_version == "7"


@pytest.mark.parametrize(
    ("ttl", "age", "deleted", "wait"),
    [(None, 99, False, None), (30, 29, False, 1), (30, 30, True, None), (0, 0, True, None), (-5, 0, True, None)],
    ids=["for ever", "not yet", "over", "at once", "negative"],
)
def test_what_is_finished_is_deleted_after_its_ttl(ttl: int | None, age: int, deleted: bool, wait: int | None) -> None:
    deadlines, since = Deadlines(), NOW - timedelta(seconds=age)
    chain = delete_finished(POD, META, ttl=ttl, since=since, now=NOW, deadlines=deadlines)
    assert chain == ((delete_of(POD, META, Intent.CLEAN_UP, f"completed {ttl} seconds ago"),) if deleted else ())
    assert deadlines.next == (None if wait is None else NOW + timedelta(seconds=wait))


class Counts(Model):
    desired: int = 0
    failed: int = 0
    message: str = ""


def test_a_status_patch_always_holds_the_counts_that_are_asked_for() -> None:
    before, after = Counts(desired=2, message="x"), Counts(desired=2, failed=1)
    patch = status_patch(POD, META, before, after)
    assert patch == patch_of(
        POD, META, Intent.STATUS, "status", body={"status": {"failed": 1, "message": None}}, subresource="status"
    )
    patch = status_patch(POD, META, Counts(), Counts(message="x"), "desired", "failed")
    assert patch is not None
    assert patch.body == {"status": {"desired": 0, "failed": 0, "message": "x"}}


def test_a_status_that_has_not_changed_is_not_written() -> None:
    assert status_patch(POD, META, Counts(desired=2), Counts(desired=2), "desired") is None
