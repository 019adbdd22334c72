"""`flotilla replay`: recordings built by hand, and the command's comments on them."""

import json
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from flotilla_cli.bundle.records import Bundle, Recorded, read, write
from flotilla_cli.main import main
from flotilla_cli.replay.replayer import Replay, ReplayStep
from flotilla_cloneset.cloneset.controller import CONTROLLER as CLONE_SETS
from flotilla_common.bus import subjects
from flotilla_common.control.keystate import Memory
from flotilla_common.control.plan import Delete, Outcome, OutcomeKind
from flotilla_common.control.replay_controller import Planning
from flotilla_common.control.writes import write_failure_of
from tests.testkit.documents import Json
from tests.unit.replay.recorder import Recording

CLONE: Json = {
    "metadata": {"name": "web", "uid": "uid-web", "generation": 1},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "web:1"}]},
        },
    },
}


def clone(**spec: Any) -> Json:
    return msgspec.json.decode(msgspec.json.encode({**CLONE, "spec": {**CLONE["spec"], **spec}}))


def recording(**spec: Any) -> Recording:
    """Return a recording of a CloneSet that was just created."""
    made = Recording()
    made.known.append(made.kube("CloneSet", clone(**spec)))
    made.see(*made.known)
    return made


def steps(bundle: Bundle) -> list[ReplayStep]:
    return list(Replay(bundle, CLONE_SETS).steps())


def differences(bundle: Bundle) -> list[tuple[str, ...]]:
    return [step.differences for step in steps(bundle)]


def first_pass() -> Recording:
    """Return a recording in which a revision and two pods are created, and the bus brings them."""
    made = recording()
    made.heard += made.say(*made.plan())
    return made


def test_every_pass_is_planned_again_and_then_the_end():
    made = first_pass()
    told = steps(made.bundle())
    assert [step.differences for step in told] == [(), ()]
    assert [(write.action, write.kind, write.outcome) for write in told[0].writes] == [
        ("create", "ControllerRevision", "Ok"),
        ("create", "Pod", "Ok"),
        ("create", "Pod", "Ok"),
        ("patch", "CloneSet", "Ok"),
    ]
    assert told[0].plan.numbers["scaleUp"] == 2
    assert told[1].done is None


def test_what_others_wrote_is_no_pass_of_the_service():
    made = first_pass()
    theirs = deepcopy(next(one for one in made.heard if one.subject.startswith("act.v1.")))
    theirs.body.update(owner={"kind": "UnitedDeployment", "namespace": "shop", "name": "web"}, trace="t", replica="r2")
    made.heard.append(theirs)
    bundle = made.bundle()
    assert differences(msgspec.structs.replace(bundle, begin=bundle.begin - timedelta(seconds=1))) == [(), ()]


def test_of_reasons_that_cannot_be_read_the_writes_are_left():
    """Reasons of an earlier release have no state."""
    made = first_pass()
    made.say(*made.plan(), writes=0)
    for one in made.heard:
        for reason in one.body.get("reasons", ()):
            del reason["state"]
    bundle = made.bundle()
    first = steps(msgspec.structs.replace(bundle, begin=bundle.begin - timedelta(seconds=1)))[0]
    assert first.differences == ()
    assert [write.outcome for write in first.writes] == ["Ok"] * 4


def test_a_service_sees_its_own_writes_before_the_bus_brings_them():
    made = recording()
    left = made.say(*made.plan())
    made.say(*made.plan())  # it plans again; nothing of what it made was published yet
    made.heard += left
    assert differences(made.bundle()) == [(), (), ()]


def test_a_service_may_be_behind_what_was_published():
    made = first_pass()
    seen = made.plan()
    made.heard.append(made.kube("CloneSet", clone(replicas=5)))
    made.say(*seen, words=True)
    told = steps(made.bundle())
    assert [step.differences for step in told[:2]] == [(), ()]
    assert [step.behind for step in told[:2]] == [0, 1]


def test_a_decision_from_no_possible_state_differs():
    made = recording()
    subject, plan = made.plan()
    made.say(subject, msgspec.structs.replace(plan, numbers=plan.numbers | {"scaleUp": 7}), writes=0)
    assert "scaleUp is 2, the service reported 7" in differences(made.bundle())[0]


def test_what_the_service_did_beyond_the_plan_is_told():
    made = recording(replicas=3)
    seen = made.plan()
    made.known[0] = made.kube("CloneSet", clone(replicas=2))
    made.clock.time += 1
    made.say(*seen, words=False)
    told = differences(made.bundle())[0]
    assert any(line.startswith("the service did create Pod web-") for line in told), told


def test_what_the_service_left_undone_is_told():
    made = recording()
    made.say(*made.plan(), writes=1)
    told = differences(made.bundle(quiet=5))[0]
    assert next(line for line in told if "did not do it" in line).startswith("create Pod web-")


def test_the_end_of_the_recording_may_cut_a_pass():
    made = recording()
    made.say(*made.plan(), writes=1)
    assert differences(made.bundle(quiet=1))[0] == ()


def test_words_and_writes_may_be_heard_in_any_order():
    made = recording()
    left = made.say(*made.plan())
    made.say(*made.plan())
    made.heard.sort(key=lambda recorded: recorded.subject)  # all writes, then all words
    made.heard += left
    assert differences(made.bundle()) == [(), (), ()]


@pytest.mark.parametrize(("late", "explained"), [(0.09, True), (0.2, False)])
def test_what_a_service_saw_may_be_heard_a_moment_after_its_words(late: float, explained: bool):
    made = first_pass()
    change = made.kube("CloneSet", clone(replicas=5))
    made.see(change)
    made.say(*made.plan())
    made.clock.time += late
    made.heard.append(msgspec.structs.replace(change, at=made.clock.now()))
    assert (differences(made.bundle())[1] == ()) is explained


@pytest.mark.parametrize("named", [True, False])
def test_a_service_reads_the_object_after_a_conflict_however_late_the_bus_brings_it(named: bool):
    made = first_pass()
    subject, plan = made.plan()
    change = made.kube("CloneSet", clone(replicas=5))
    version = change.headers[subjects.RV] if named else ""
    assert plan.status is not None
    conflict = Outcome(kind=OutcomeKind.CONFLICT, message="the object has been modified", version=version)
    made.say(subject, plan, outcomes={0: conflict})
    made.see(change)
    made.say(*made.plan())
    made.clock.time += 5
    made.heard.append(msgspec.structs.replace(change, at=made.clock.now()))
    assert (differences(made.bundle())[:3] == [(), (), ()]) is named


def test_a_service_drops_an_object_that_its_write_did_not_find():
    made = first_pass()
    made.heard.append(made.kube("CloneSet", clone(replicas=1)))
    made.see(made.heard[-1])
    subject, plan = made.plan()
    index, delete = next((at, action) for at, action in enumerate(plan.actions) if isinstance(action, Delete))
    made.say(subject, plan, outcomes={index: Outcome(kind=OutcomeKind.NOT_FOUND, message="not found")})
    gone = made.kube("Pod", made.bodies["Pod", delete.name], subjects.DELETED)
    made.see(gone)
    made.say(*made.plan())
    made.clock.time += 5
    made.heard.append(msgspec.structs.replace(gone, at=made.clock.now()))
    assert differences(made.bundle())[:3] == [(), (), ()]


def test_after_a_failure_the_rest_of_a_plan_is_held_back():
    made = recording()
    made.say(*made.plan(), outcomes={1: Outcome(kind=OutcomeKind.DENIED, message="exceeded quota")}, writes=2)
    assert differences(made.bundle())[0] == ()


def test_a_failure_is_remembered_for_the_next_pass():
    made = recording()
    refused = Outcome(kind=OutcomeKind.DENIED, message="exceeded quota")
    subject, plan = made.plan()
    made.heard += made.say(subject, plan, outcomes={1: refused, 2: refused})
    [first, *_] = [action for stage in plan.stages for (action,) in stage.chains if action.phase]
    remembered = Memory({"scale": "exceeded quota"}, refused=(write_failure_of(first, refused),))
    made.say(*made.plan(remembered), outcomes={0: refused, 1: refused})
    told = steps(made.bundle())
    assert [step.differences for step in told[:2]] == [(), ()]
    assert "WriteFailed" in [reason.code for reason in told[1].plan.reasons]


def test_another_replica_remembers_nothing():
    made = recording()
    refused = Outcome(kind=OutcomeKind.DENIED, message="exceeded quota")
    made.heard += made.say(*made.plan(), outcomes={1: refused, 2: refused})
    made.say(*made.plan(), replica="r2", outcomes={0: refused, 1: refused})
    assert [one for one in differences(made.bundle())[:2] if one] == []


def test_a_new_revision_has_another_name_when_its_template_was_redacted():
    made = first_pass()
    bundle = made.bundle()
    text = write(bundle).decode().replace('"image":"web:1"', '"image":"web:one"')
    changed = read(text.encode())
    assert differences(changed)[0] == ()
    assert changed.heard[1].body["name"] == bundle.heard[1].body["name"]


def test_versions_that_the_file_lacks_are_counted():
    made = recording()
    made.say(*made.plan())
    again = Replay(made.bundle(), CLONE_SETS)
    list(again.steps())
    assert again.missing == 4


def test_passes_that_began_before_the_recording_are_left_out():
    made = recording()
    made.say(*made.plan())
    made.known += made.heard[:2]
    made.heard[:] = made.heard[2:]
    assert len(steps(made.bundle())) == 1


@pytest.mark.parametrize(("quiet", "judged"), [(0.5, False), (5, True)])
def test_at_the_end_a_service_that_had_time_should_have_acted(quiet: float, judged: bool):
    made = first_pass()
    made.heard.append(made.kube("CloneSet", clone(replicas=3)))
    told = differences(made.bundle(quiet))[-1]
    assert bool([line for line in told if "the service does not do it" in line]) is judged


def test_gates_and_options_of_the_service_are_planned_with():
    made = Recording(Planning(gates="CloneSetShortHash=true", options={"drop_field_owners": False}))
    made.known.append(made.kube("CloneSet", clone()))
    made.see(*made.known)
    made.heard += made.say(*made.plan())
    bundle = made.bundle()
    assert differences(bundle)[0] == ()
    other = msgspec.structs.replace(bundle, header=msgspec.structs.replace(bundle.header, planning=None))
    assert steps(other)[0].plan.stages != steps(bundle)[0].plan.stages


def test_what_cannot_be_read_is_not_planned():
    made = first_pass()
    made.heard.append(made.kube("CloneSet", clone(replicas="many")))
    assert len(steps(made.bundle())) == 1


def is_pod(recorded: Recorded) -> bool:
    return recorded.subject.startswith("kube.v1.core.pods.")


def moved(recorded: Recorded) -> Recorded:
    """Return the message on the former subject of a pod whose version the other message has."""
    meta = {key: recorded.body["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}
    return msgspec.structs.replace(
        recorded,
        subject=f"{subjects.object_part(recorded.subject)}.-.-.-",
        headers=recorded.headers | {subjects.OP: subjects.MOVED, subjects.TO: recorded.subject},
        body={"apiVersion": "v1", "kind": "Pod", "metadata": meta},
    )


def test_recordings_are_readable_whose_pods_have_short_subjects():
    """Releases with format 1 did not publish whose a pod is."""
    made = first_pass()
    made.heard = [msgspec.structs.replace(one, subject=subjects.object_part(one.subject)) for one in made.heard]
    bundle = made.bundle()
    former = msgspec.structs.replace(bundle, header=msgspec.structs.replace(bundle.header, format=1))
    again = Replay(read(write(former)), CLONE_SETS)
    assert [step.differences for step in again.steps()] == [(), ()]
    assert again.missing == 0


def test_a_pod_that_moved_to_another_subject_has_not_changed():
    made = recording()
    left = made.say(*made.plan())
    pods = [one for one in left if is_pod(one)]
    assert len(pods) == 2
    made.heard += [*left, *map(moved, pods)]
    subject, plan = made.plan()
    made.say(subject, plan, writes=0)
    again = Replay(made.bundle(), CLONE_SETS)
    told = list(again.steps())
    assert {step.differences for step in told} == {()}
    assert {step.behind for step in told} == {0}
    assert again.missing == 0


def test_an_object_that_is_gone_has_no_steps():
    made = Recording()
    assert steps(made.bundle()) == []


def run(bundle: Bundle, tmp_path: Path, *options: str) -> tuple[int, str]:
    path = tmp_path / "bundle.jsonl"
    path.write_bytes(write(bundle))
    result = CliRunner().invoke(main, ["replay", str(path), *options])
    return result.exit_code, result.output


def test_the_command_says_what_it_found(tmp_path: Path):
    code, text = run(first_pass().bundle(), tmp_path)
    assert code == 0
    assert "CloneSet shop/web  recorded 2026-01-01 00:00:00 UTC for 0s by test" in text
    assert "no service published its settings: planned with the defaults" in text
    assert "create Pod web-" in text
    assert text.endswith("all 2 decisions match those of the service\n")


def test_the_command_points_at_differences(tmp_path: Path):
    made = recording()
    subject, plan = made.plan()
    made.say(subject, msgspec.structs.replace(plan, reasons=()), writes=0)
    code, text = run(made.bundle(), tmp_path)
    assert code == 1
    assert "  ≠ reason " in text
    assert "1 of 2 decisions differ" in text


def test_the_command_prints_whole_plans_as_json(tmp_path: Path):
    code, text = run(first_pass().bundle(), tmp_path, "-o", "json")
    told = json.loads(text)
    assert (code, told["differing"], len(told["steps"])) == (0, 0, 2)
    assert told["steps"][0]["plan"]["stages"][0]["chains"][0][0]["body"]["kind"] == "ControllerRevision"
    assert told["steps"][0]["did"][0]["outcome"] == "Ok"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(lambda text: "", "it does not begin with a bundle's header", id="empty"),
        pytest.param(lambda text: "{}\n", "line 1: ", id="something else"),
        pytest.param(
            lambda text: text.replace('"format":2', '"format":9'),
            "its format is 9, this release reads 1 and 2",
            id="another format",
        ),
        pytest.param(lambda text: text.rpartition('{"record":"end"')[0], "it is incomplete", id="cut off"),
        pytest.param(lambda text: text + "{", ": ", id="half a line"),
        pytest.param(lambda text: text.replace("clonesets", "others"), "no installed service plans others", id="kind"),
    ],
)
def test_files_that_cannot_be_replayed(change: Any, message: str, tmp_path: Path):
    path = tmp_path / "bundle.jsonl"
    path.write_text(change(write(first_pass().bundle()).decode()))
    result = CliRunner().invoke(main, ["replay", str(path)])
    assert result.exit_code == 1
    assert message in result.output


def test_a_planner_that_raises_is_a_decision(tmp_path: Path):
    made = recording()
    broken = deepcopy(made.bundle())
    bad = msgspec.structs.replace(CLONE_SETS, build=lambda context, options: _raise())
    with pytest.raises(ZeroDivisionError):
        list(Replay(broken, bad).steps())
    failing = msgspec.structs.replace(CLONE_SETS, plan=_raise)
    told = list(Replay(broken, failing).steps())
    assert {reason.code for step in told for reason in step.plan.reasons} == {"PlanningFailed"}


def _raise(*_: object) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        pytest.param({"cause": "in other words"}, False, id="causes are for people"),
        pytest.param({"cause": "x", "intent": "", "revision": ""}, False, id="an earlier release had no intents"),
        pytest.param({"intent": "scale in"}, True, id="another intent"),
        pytest.param({"revision": "web-other"}, True, id="another revision"),
    ],
)
def test_writes_are_compared_by_intent_and_revision(changed: Json, differs: bool):
    made = first_pass()
    for recorded in made.heard:
        if recorded.subject.startswith("act.v1."):
            recorded.body.update(changed)
    told = steps(made.bundle())[0]
    assert bool(told.differences) is differs
    if "cause" in changed:
        assert {write.cause for write in told.writes} == {changed["cause"]}
