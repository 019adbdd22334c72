"""The story of a rollout, from the messages of one (golden/history.jsonl: six pods in place) and from made-up ones."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flotilla_cli.history.render import LINES, render
from flotilla_cli.output import plain
from flotilla_common.api.resources import POD
from flotilla_common.bus import subjects
from flotilla_common.bus.affiliation import Affiliation
from flotilla_common.bus.interface import Message
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.pod_shards import pod_shard
from flotilla_common.control.plan import Intent, Reason, State
from flotilla_insight.history import gather
from flotilla_insight.history.gather import writers_of
from flotilla_insight.history.generations import ObjectRecords, Pod, Writer, is_user_write
from flotilla_insight.history.operations import Operation, operations, waves
from flotilla_insight.history.timeline import GenerationView, Timeline, pod_timeline, timeline
from flotilla_insight.published import Act, Failure, Owner, Why, decoded
from tests.unit.replay.scripted_bus import ScriptedBus

START = datetime(2026, 11, 24, 12, 0, 0, tzinfo=UTC)
RECORDED = Path(__file__).parent / "golden" / "history.jsonl"
OWNER = Owner("CloneSet", "default", "web")


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def recorded() -> ObjectRecords:
    messages = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    bodies = {kind: [one["body"] for one in messages if one["subject"].startswith(kind)] for kind in ("act", "dec")}
    acts = [act for act in (decoded(msgspec.json.encode(body), Act) for body in bodies["act"]) if act]
    return ObjectRecords(
        kind="CloneSet",
        namespace="default",
        name="six",
        begins=acts[0].at,
        user_writes=tuple(filter(is_user_write, acts)),
        decisions=tuple(msgspec.convert(body, Why) for body in bodies["dec"]),
        writes=tuple(sorted((act for act in acts if not is_user_write(act)), key=lambda act: act.at)),
    )


def user_write(seconds: float, generation: int = 2, action: str = "update", **more: Any) -> Act:
    told = {"user": "jane", "manager": "kubectl", "uid": "u", "outcome": "Ok"} | more
    if action == "update":
        told = {"changes": ({"path": "spec.replicas", "from": 1, "to": 2},)} | told
    made = {"service": "webhook", "action": action, "generation": generation, "kind": "CloneSet", "name": "web"} | told
    return Act(at=at(seconds), **made)


def decision(seconds: float, *reasons: str, generation: int = 2, errors: tuple[str, ...] = (), **numbers: int) -> Why:
    """Build a decision from reasons as `state Code: text`."""
    parted = (one.replace(": ", " ", 1).split(" ", 2) for one in reasons)
    given = tuple(Reason(State(state), code, text) for state, code, text in parted)
    failures = tuple(Failure("scale", text) for text in errors)
    return Why(
        kind="CloneSet", uid="u", generation=generation, at=at(seconds), reasons=given, numbers=numbers, errors=failures
    )


def write(seconds: float, name: str, cause: str = "scale up", action: str = "create", **more: Any) -> Act:
    made: dict[str, Any] = {"service": "cloneset", "kind": "Pod", "owner": OWNER, "outcome": "Ok", "trace": "t"}
    return Act(at=at(seconds), name=name, cause=cause, action=action, **{"intent": Intent.CREATE, **made, **more})


def in_place(seconds: float, name: str, trace: str = "t", takes: float = 1.0) -> Iterator[Act]:
    cause, more = "in-place update to web-2", {"intent": Intent.IN_PLACE_UPDATE, "revision": "web-2", "trace": trace}
    yield write(seconds, name, cause, "patch", subresource="status", **more)
    yield write(seconds + 0.01, name, cause, "patch", **more)
    more = {"intent": Intent.REFRESH, "trace": f"{trace}-later"}
    yield write(seconds + takes, name, "refresh", "patch", subresource="status", **more)


def told(*parts: Act | Why, pods: dict[str, Pod] | None = None, **more: Any) -> Timeline:
    acts = sorted((part for part in parts if isinstance(part, Act)), key=lambda act: act.at)
    record = ObjectRecords(
        kind="CloneSet",
        namespace="default",
        name="web",
        user_writes=tuple(filter(is_user_write, acts)),
        writes=tuple(act for act in acts if not is_user_write(act)),
        decisions=tuple(part for part in parts if isinstance(part, Why)),
        pods=pods or {},
        **more,
    )
    return timeline(record, at(100))


def lines(chapter: GenerationView) -> list[str]:
    return [step.text for step in chapter.steps]


def test_a_recorded_rollout_is_told_from_the_change_to_the_last_pod() -> None:
    found = timeline(recorded(), at(100))
    created, rollout = found.chapters
    assert found.notes == []
    assert (created.title, created.generation) == ("created by admin with kubectl-client-side-apply", 1)
    assert rollout.title == "changed by admin with kubectl-client-side-apply"
    assert rollout.changes == ["spec.template.spec.containers[main].image  nginx:1.29 → nginx:1.30"]
    text = "\n".join(lines(rollout))
    assert "decided (replicas 6, partition 0, maxUnavailable 2, maxSurge 0): updating 2 pods to six-" in text
    assert "(2 pods, 2 of 6); done after 0." in text
    assert "[WaitingForMaxUnavailable, 0.9 s]" in text
    assert "rejected update by admin with kubectl-client-side-apply: spec.updateStrategy" in text
    assert rollout.done is not None
    assert rollout.totals is not None
    assert (rollout.totals.pods, rollout.totals.pod_writes) == (6, 18)
    ends = [step for step in rollout.steps if step.tone == "end"]
    assert [step.text for step in ends] == ["6 of 6 pods updated, all available"]


def test_fifty_pods_fit_on_one_screen() -> None:
    writes = [act for pod in range(50) for act in in_place(pod * 0.1, f"web-{pod}", f"t{pod}")]
    waits = [
        decision(pod * 0.1, f"waiting WaitingForMaxUnavailable: used by web-{pod}", replicas=50) for pod in range(50)
    ]
    found = told(user_write(-1), *waits, *writes, decision(9, "done Complete: all done"))
    shown = plain(render(found, everything=False)).splitlines()
    assert len(shown) <= 24
    assert any("50 of 50" in line for line in shown)
    assert any("waiting: used by web-49  [WaitingForMaxUnavailable, 9.0 s]" in line for line in shown)
    assert "150 writes, 3.0 for each of 50 pods; 51 decisions" in shown[-2]
    assert len(plain(render(found, everything=True)).splitlines()) > 150


def test_waves_are_made_of_what_one_pass_began() -> None:
    writes = [act for wave in range(3) for pod in range(2) for act in in_place(wave * 5, f"w{wave}-{pod}", f"t{wave}")]
    (chapter,) = told(user_write(-1), *writes).chapters
    assert lines(chapter) == [
        f"in-place update to web-2: w{wave}-0, w{wave}-1 (2 pods, {2 * wave + 2} of 6); done after 1.0 s"
        for wave in range(3)
    ]


def test_a_pod_that_is_not_ready_again_is_named_by_its_wave() -> None:
    started = list(in_place(0, "web-1"))[:2]
    (chapter,) = told(user_write(-1), *started, *in_place(0, "web-2")).chapters
    assert lines(chapter) == ["in-place update to web-2: web-1, web-2 (2 pods); done after 1.0 s, 1 not yet"]
    (alone,) = told(user_write(-1), *started).chapters
    assert lines(alone) == ["in-place update to web-2: web-1; not done yet"]


def test_a_created_pod_is_ready_when_it_says_so_unless_it_was_updated_since() -> None:
    pods = {"a": Pod(ready=at(7)), "b": Pod(ready=at(50)), "c": Pod()}
    made = [write(1, name) for name in ("a", "b", "c", "d")]
    (chapter,) = told(user_write(0), *made, *in_place(40, "b"), pods=pods).chapters
    assert "scale up: a, b, c, d (4 pods); ready after 6.0 s, 1 not yet" in lines(chapter)


def test_a_reason_that_comes_and_goes_is_one_wait() -> None:
    hook = "held WaitingForHook: a hook holds web-1"
    (chapter,) = told(
        user_write(0), decision(1, hook), decision(4, "progressing Updating: 1 pod"), decision(5, hook)
    ).chapters
    assert "a hook holds web-1  [WaitingForHook, 98.0 s in 2 parts]" in lines(chapter)
    assert lines(chapter)[-1] == "not done: a hook holds web-1"
    assert chapter.done is None


def test_reasons_of_one_code_are_told_apart_by_their_place() -> None:
    both = ("waiting WaitingForPod: web-1", "waiting WaitingForPod: web-2")
    (chapter,) = told(user_write(0), decision(1, *both), decision(51, "waiting WaitingForPod: web-2")).chapters
    assert [text for text in lines(chapter) if "[" in text] == [
        "waiting: web-2  [WaitingForPod, 99.0 s]",
        "waiting: web-2  [WaitingForPod, 50.0 s]",
    ]


def test_notes_are_no_waits_and_keep_nothing_from_being_done() -> None:
    note, work = "note NodesExcluded: 1 node", "progressing Creating: 2 pods"
    (chapter,) = told(user_write(0), decision(1, note, work), decision(5, note, "done AllNodesDone: 2 of 2")).chapters
    assert chapter.done == at(5)
    assert lines(chapter) == ["decided: 2 pods", "1 node; 2 of 2"]


def test_what_failed_is_told_once_with_its_number_and_text() -> None:
    refused = [write(n, f"web-{n}", outcome="Denied", message=f"pods web-{n}: exceeded quota: small") for n in range(3)]
    (chapter,) = told(user_write(0), *refused, decision(4, errors=("exceeded quota",))).chapters
    text = lines(chapter)
    assert "3 times Denied: create Pod web-0, web-1, web-2: pods web-2: exceeded quota: small" in text
    assert any("exceeded quota  [failed scale, " in line for line in text)
    assert chapter.totals is not None
    assert (chapter.totals.refused, chapter.totals.writes) == (3, 0)


def test_each_change_of_the_spec_is_a_chapter_and_a_retry_is_none() -> None:
    label = ({"path": "metadata.labels.a", "from": "1", "to": "2"},)
    found = told(
        user_write(0, 1, "create"),
        user_write(10),
        user_write(10.1),
        user_write(12, changes=label),
        user_write(20, 3, user="hpa"),
        user_write(30, 0, "delete"),
        decision(11),
        decision(21, generation=3),
    )
    titles = [chapter.title for chapter in found.chapters]
    assert titles == [
        "created by jane with kubectl",
        "changed by jane with kubectl",
        "changed by hpa with kubectl",
        "deleted by jane with kubectl",
    ]
    assert "changed by jane with kubectl: metadata.labels.a  1 → 2" in lines(found.chapters[1])


def test_a_change_past_the_webhook_is_a_chapter_too() -> None:
    before, after = decision(1, replicas=3, generation=1), decision(9, replicas=5)
    writers = (Writer(manager="kubectl", operation="Update", subresource="scale", at=None),)
    scaled = told(before, after, writers=writers).chapters[1]
    assert (scaled.title, scaled.changes) == ("scaled with kubectl, without a webhook call", ["replicas  3 → 5"])
    other = (Writer(manager="helm", operation="Apply", subresource="", at=at(8)),)
    unchanged = decision(9, replicas=3)
    written = told(before, unchanged, writers=other).chapters[1]
    assert written.title == "changed without a webhook call; fields were last written by helm (Apply)"
    assert told(before, unchanged).chapters[1].title.startswith("changed, author unknown")


def test_who_owns_fields_is_read_from_the_live_object() -> None:
    fields = [
        {"manager": "kubectl", "operation": "Update", "subresource": "scale"},
        {"manager": "kruise-manager", "operation": "Update", "subresource": "status", "time": "2026-11-24T12:00:00Z"},
        {"manager": "helm", "operation": "Apply", "time": "2026-11-24T12:00:00Z"},
    ]
    found = writers_of({"metadata": {"managedFields": fields}})
    assert [(one.manager, one.at) for one in found] == [("kubectl", None), ("helm", START)]


@pytest.mark.parametrize(("first", "noted"), [(user_write(0, 1, "create"), False), (user_write(0), True)])
def test_it_is_said_that_the_record_may_begin_later_than_the_object(first: Act, noted: bool) -> None:
    assert bool(told(first, begins=at(-5)).notes) is noted


def test_of_very_many_steps_the_middle_is_left_out() -> None:
    refused = [write(n, f"web-{n}", outcome="Denied", message=f"reason {n}") for n in range(2 * LINES)]
    shown = plain(render(told(user_write(0), *refused), everything=False))
    assert f"… {LINES} more steps (--all)" in shown


def test_the_story_of_a_pod_is_every_write_on_it_and_its_own_steps() -> None:
    record = ObjectRecords(
        kind="Pod",
        namespace="default",
        name="web-1",
        begins=at(-5),
        writes=(write(1, "web-1"), *in_place(40, "web-1")),
        pods={"web-1": Pod(created=at(0), scheduled=at(1), ready=at(41))},
    )
    found = pod_timeline(record)
    (chapter,) = found.chapters
    assert found.notes == []
    assert [step.text.partition(" (")[0] for step in chapter.steps][:1] == ["created"]
    assert "cloneset: create, scale up for CloneSet web → Ok" in lines(chapter)
    assert len(chapter.steps) == 7
    assert pod_timeline(msgspec.structs.replace(record, begins=at(5))).notes
    assert pod_timeline(ObjectRecords(kind="Pod", namespace="a", name="b")).chapters == []


BUDGET = Owner("PodUnavailableBudget", "default", "web")


def use(seconds: float, name: str, refusal: str = "", action: str = "delete") -> Act:
    """Return a request concerning a pod, which the budget decides."""
    more = {"outcome": "Denied" if refusal else "Ok", "message": refusal, "owner": BUDGET}
    return user_write(seconds, 0, action, kind="Pod", name=name, manager="", **more)


def test_who_used_a_budget_and_who_was_refused() -> None:
    taken = write(3, "web", "budget for the update of 2 pods", "patch", kind="PodUnavailableBudget", pods=("a", "b"))
    record = ObjectRecords(
        kind="PodUnavailableBudget",
        namespace="default",
        name="web",
        user_writes=(user_write(0, 1, "create"),),
        uses=(use(1, "web-1"), use(1.1, "web-2"), use(2, "web-3", "none is left"), taken, use(60, "web-4")),
    )
    (chapter,) = timeline(record, at(100)).chapters
    assert lines(chapter) == [
        "2 times admitted: delete by jane: web-1, web-2",
        "refused: delete by jane: web-3: none is left",
        "CloneSet web: budget for the update of 2 pods: a, b",
        "admitted: delete by jane: web-4",
    ]
    assert [step.tone for step in chapter.steps] == ["write", "bad", "write", "write"]


def test_a_pod_that_a_budget_protects() -> None:
    record = ObjectRecords(
        kind="Pod", namespace="default", name="web-3", writes=(use(2, "web-3", "none is left", "evict"),)
    )
    (chapter,) = pod_timeline(record).chapters
    assert lines(chapter) == ["evict by jane, decided by PodUnavailableBudget web → Denied: none is left"]


def test_a_story_is_one_json_document() -> None:
    document = json.loads(msgspec.json.encode(timeline(recorded(), at(100))))
    assert document["chapters"][1]["totals"]["podWrites"] == 18
    assert document["chapters"][1]["steps"][0]["tone"] == "decision"


def test_a_creation_that_was_refused_is_a_chapter_of_its_own() -> None:
    refused = user_write(0, 1, "create", outcome="Denied", message="spec.selector: Required value", uid="")
    again = told(refused, user_write(5, 1, "create"), decision(6, "done Complete: done", generation=1))
    first, second = again.chapters
    assert (first.title, first.changes) == ("creation by jane with kubectl rejected", ["spec.selector: Required value"])
    assert (first.done, second.done) == (None, at(6))
    assert told().chapters == []


def test_a_change_that_the_webhook_was_asked_about_twice_is_told_once() -> None:
    (chapter,) = told(user_write(0), user_write(0.03), decision(0.1, "done Complete: 2 of 2 pods updated")).chapters
    assert chapter.title == "changed by jane with kubectl"
    assert not any("changed by" in text for text in lines(chapter))


CAUSES = st.sampled_from(["", "refresh", "scale up", "in-place update to web-2", "in-place update to web-3", "status"])


@given(causes=st.lists(CAUSES | st.text(), min_size=1))
def test_causes_may_read_differently_without_another_story(causes: list[str]) -> None:
    record = recorded()
    words = cycle(causes)
    other = tuple(msgspec.structs.replace(one, cause=next(words)) for one in record.writes)
    first, second = (operations(writes, record.kind, record.pods) for writes in (record.writes, other))
    assert [shape(one) for one in first] == [shape(one) for one in second]
    assert [len(wave.operations) for wave in waves(first)] == [len(wave.operations) for wave in waves(second)]
    stories = (timeline(msgspec.structs.replace(record, writes=writes), at(100)) for writes in (record.writes, other))
    totals, others = ([chapter.totals for chapter in one.chapters] for one in stories)
    assert totals == others


def shape(operation: Operation) -> tuple[object, ...]:
    """Return an operation without its texts."""
    return operation.work, operation.begin.name, operation.begin.at, operation.ended, operation.lasts


def test_an_update_after_a_grace_period_and_in_batches_is_one_operation() -> None:
    begun = {"action": "patch", "revision": "web-2"}
    grace, batch, last = (
        write(seconds, "web-1", cause, intent=intent, **begun)
        for seconds, cause, intent in (
            (0, "in-place update to web-2", Intent.GRACE),
            (5, "in-place update to web-2", Intent.RESIZE),
            (7, "next batch of the in-place update to web-2", Intent.IN_PLACE_UPDATE),
        )
    )
    ready = write(9, "web-1", "refresh", "patch", intent=Intent.REFRESH)
    (operation,) = operations([grace, batch, last, ready], "CloneSet", {})
    assert (operation.seconds, operation.last) == (9, at(7))


def test_records_of_earlier_releases_have_no_intents() -> None:
    old = [msgspec.structs.replace(act, intent="", revision="") for act in in_place(0, "web-1")]
    (chapter,) = told(user_write(-1), *old, write(5, "web-2", intent="")).chapters
    assert lines(chapter) == ["in-place update to web-2: web-1", "scale up: web-2"]


async def no_streams(bus: NatsBus) -> list[Any]:
    return []


async def test_the_steps_of_a_pod_are_read_from_its_present_subject(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "list_streams", no_streams)
    present = subjects.pod("shop", "web-1", Affiliation("CloneSet_apps_kruise_io", "17", "-"))
    meta = {"name": "web-1", "namespace": "shop"}
    whole = {"metadata": meta | {"creationTimestamp": "2026-11-24T12:00:00Z"}}
    former = subjects.pod("shop", "web-1", Affiliation("-", "-", "-"))
    other = subjects.kube_object(POD, "other", "web-1").replace("*", "-")
    held = [
        Message(subject=present, data=json.dumps(whole).encode(), headers={subjects.OP: "MODIFIED"}),
        Message(
            subject=former,
            data=json.dumps({"metadata": meta}).encode(),
            headers={subjects.OP: subjects.MOVED, subjects.TO: present},
        ),
        Message(subject=other, data=json.dumps({"metadata": meta}).encode(), headers={subjects.OP: "ADDED"}),
    ]
    records = await gather.gather_pod(cast("NatsBus", ScriptedBus(held)), "shop", "web-1")
    assert records.pods == {"web-1": Pod(created=START)}


@pytest.mark.parametrize("shard", [0, 1])
async def test_the_steps_of_a_pod_are_read_from_its_shard(monkeypatch: pytest.MonkeyPatch, shard: int) -> None:
    monkeypatch.setattr(gather, "list_streams", no_streams)
    marker = subjects.Marker(epoch="0.a", state=subjects.SYNCED).of_shards(2)
    meta = {"name": "web-1", "namespace": "shop", "creationTimestamp": "2026-11-24T12:00:00Z"}
    subject = subjects.pod("shop", "web-1", Affiliation("-", "-", "-"), pod_shard(shard))
    held = [
        Message(subject=subjects.kube_marker(POD), data=msgspec.json.encode(marker)),
        Message(subject=subject, data=json.dumps({"metadata": meta}).encode(), headers={subjects.OP: "ADDED"}),
    ]
    records = await gather.gather_pod(cast("NatsBus", ScriptedBus(held)), "shop", "web-1")
    assert records.pods == {"web-1": Pod(created=START)}
