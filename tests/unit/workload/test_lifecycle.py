"""Lifecycle states, hooks, KruisePodReady, Ready, and the writes that a pod edit becomes (common.md §6, §8)."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import Condition
from flotilla_common.api.workload import Lifecycle, LifecycleHook
from flotilla_common.control.plan import Event, Intent
from flotilla_common.workload.lifecycle import (
    PRE_DELETE_HOLDER,
    PRE_UPDATE_HOLDER,
    fully_hooked,
    hooked,
    initial_labels,
    state_annotations,
    write_state,
)
from flotilla_common.workload.podedit import PodEdit
from flotilla_common.workload.readiness import Blocker, add_blocker, ensure_pod_ready, recompute_ready, remove_blocker
from tests.unit.workload.build import LIFECYCLE, NOW, annotations_of, conditions_of, labels_of, patches, pod

TIMESTAMP = "lifecycle.apps.kruise.io/timestamp"
BOTH = ("InPlaceUpdateReady", "KruisePodReady")
PRE_DELETE = '[{"userAgent":"Lifecycle","key":"preDeleteHook"}]'
PRE_UPDATE = '[{"userAgent":"Lifecycle","key":"preUpdateHook"}]'


def lifecycle(**hooks: Any) -> Lifecycle:
    return msgspec.convert(hooks, Lifecycle)


def held_pod(message: str, status: str = "False", **members: Any) -> Pod:
    conditions = {"KruisePodReady": {"value": status, "message": message}}
    return pod(gates=BOTH, conditions=conditions, **members)


NOT_READY = lifecycle(
    preDelete={"labelsHandler": {"a": "b"}, "markPodNotReady": True},
    inPlaceUpdate={"labelsHandler": {"a": "b"}, "finalizersHandler": ["x.io/f", "x.io/g"], "markPodNotReady": True},
)


@pytest.mark.parametrize(
    ("hook", "any_", "all_"),
    [
        (None, False, False),
        (LifecycleHook(), False, True),
        (LifecycleHook(labels_handler={"a": "1"}), True, True),
        (LifecycleHook(labels_handler={"a": "2"}), False, False),
        (LifecycleHook(labels_handler={"a": "1", "b": "1"}), True, False),
        (LifecycleHook(finalizers_handler=["f"]), True, True),
        (LifecycleHook(finalizers_handler=["f", "g"]), True, False),
        (LifecycleHook(labels_handler={"b": "1"}, finalizers_handler=["f"]), True, False),
    ],
)
def test_hooks(hook: LifecycleHook | None, any_: bool, all_: bool) -> None:
    target = pod(labels={"a": "1"}, finalizers=["f"])
    assert hooked(hook, target) is any_
    assert fully_hooked(hook, target) is all_


def test_new_pods_are_preparing() -> None:
    assert initial_labels() == {LIFECYCLE: "PreparingNormal"}


def test_a_state_is_one_small_patch() -> None:
    edit = PodEdit(pod(), Intent.REFRESH, "x")
    write_state(edit, "PreparingDelete", None, NOW)
    (patch,) = patches(edit.chain())
    assert patch.body == {
        "metadata": {"labels": {LIFECYCLE: "PreparingDelete"}, "annotations": {TIMESTAMP: "2024-03-01T08:00:00Z"}}
    }
    assert (patch.subresource, patch.uid, patch.resource_version) == ("", "uid-web", "")
    assert state_annotations(NOW) == {TIMESTAMP: "2024-03-01T08:00:00Z"}


def test_a_state_that_is_there_is_not_written() -> None:
    edit = PodEdit(pod(), Intent.REFRESH, "x")
    write_state(edit, "Normal", None, NOW)
    assert edit.chain() == ()
    assert not edit.changed


@pytest.mark.parametrize(
    ("state", "message"), [("PreparingDelete", PRE_DELETE), ("PreparingUpdate", PRE_UPDATE)], ids=["delete", "update"]
)
def test_mark_pod_not_ready(state: str, message: str) -> None:
    edit = PodEdit(pod(gates=BOTH, conditions={"KruisePodReady": "True"}), Intent.REFRESH, "x")
    write_state(edit, state, NOT_READY, NOW)
    (patch,) = patches(edit.chain())
    conditions = conditions_of(patch)
    assert conditions["KruisePodReady"] == {
        "type": "KruisePodReady",
        "status": "False",
        "message": message,
        "lastTransitionTime": "2024-03-01T08:00:00Z",
    }
    assert conditions["Ready"]["status"] == "False"
    assert conditions["Ready"]["reason"] == "ReadinessGatesNotReady"
    assert (
        conditions["Ready"]["message"] == 'the status of pod readiness gate "KruisePodReady" is not "True", but False'
    )
    assert labels_of(patch) == {LIFECYCLE: state}
    assert patch.resource_version == "7"


@pytest.mark.parametrize("state", ["PreparingDelete", "PreparingUpdate"])
@pytest.mark.parametrize(
    "hooks",
    [None, {}, {"preDelete": {"labelsHandler": {"a": "b"}}, "inPlaceUpdate": {"labelsHandler": {"a": "b"}}}],
    ids=["no lifecycle", "no hooks", "hooks that do not ask"],
)
def test_nothing_marks_a_pod_unasked(state: str, hooks: Any) -> None:
    edit = PodEdit(pod(gates=BOTH, conditions={"KruisePodReady": "True"}), Intent.REFRESH, "x")
    write_state(edit, state, None if hooks is None else lifecycle(**hooks), NOW)
    (patch,) = patches(edit.chain())
    assert labels_of(patch) == {LIFECYCLE: state}
    assert "status" not in patch.body


def test_the_mark_is_set_even_when_the_state_is_there() -> None:
    edit = PodEdit(pod(gates=BOTH, conditions={"KruisePodReady": "True"}, state="PreparingDelete"), Intent.REFRESH, "x")
    write_state(edit, "PreparingDelete", NOT_READY, NOW)
    (patch,) = patches(edit.chain())
    assert labels_of(patch) == {}


def test_states_without_a_mark_leave_the_gate_alone() -> None:
    edit = PodEdit(pod(gates=BOTH, conditions={"KruisePodReady": "True"}), Intent.REFRESH, "x")
    write_state(edit, "Updating", NOT_READY, NOW)
    assert edit.condition("KruisePodReady") == edit.pod.conditions["KruisePodReady"]


@pytest.mark.parametrize("state", ["Updated", "Normal"])
def test_leaving_an_update_withdraws_the_mark(state: str) -> None:
    edit = PodEdit(held_pod(PRE_UPDATE, state="Updating"), Intent.REFRESH, "x")
    write_state(edit, state, None, NOW)
    condition = edit.condition("KruisePodReady")
    assert condition is not None
    assert (condition.status, condition.message) == ("True", "[]")


def test_a_cancelled_deletion_withdraws_the_mark() -> None:
    edit = PodEdit(held_pod(PRE_DELETE, state="PreparingDelete"), Intent.REFRESH, "x")
    write_state(edit, "PreparingNormal", None, NOW)
    condition = edit.condition("KruisePodReady")
    assert condition is not None
    assert condition.status == "True"


def test_rehooking_sets_labels_and_finalizers() -> None:
    target = pod(state="Updated", gates=BOTH, conditions={"KruisePodReady": "True"}, finalizers=["x.io/f"])
    edit = PodEdit(target, Intent.REFRESH, "x")
    write_state(edit, "PreparingUpdate", NOT_READY, NOW, rehook=True)
    first, second = patches(edit.chain())
    assert set(conditions_of(first)) == {"KruisePodReady", "Ready"}
    assert "metadata" not in first.body
    assert labels_of(second) == {LIFECYCLE: "PreparingUpdate", "a": "b"}
    assert second.body["metadata"]["finalizers"] == ["x.io/g"]
    assert (first.resource_version, second.resource_version, second.after_previous) == ("7", "", True)


OTHER = Blocker("Other", "k")


def test_hold_keeps_other_holders_sorted() -> None:
    edit = PodEdit(held_pod('[{"userAgent":"Other","key":"k"}]'), Intent.REFRESH, "x")
    add_blocker(edit, PRE_DELETE_HOLDER, NOW)
    add_blocker(edit, PRE_UPDATE_HOLDER, NOW)
    condition = edit.condition("KruisePodReady")
    assert condition is not None
    assert condition.message == (
        '[{"userAgent":"Lifecycle","key":"preDeleteHook"},{"userAgent":"Lifecycle","key":"preUpdateHook"},'
        '{"userAgent":"Other","key":"k"}]'
    )
    remove_blocker(edit, PRE_DELETE_HOLDER, NOW)
    remove_blocker(edit, PRE_UPDATE_HOLDER, NOW)
    condition = edit.condition("KruisePodReady")
    assert condition is not None
    assert (condition.status, condition.message) == ("False", '[{"userAgent":"Other","key":"k"}]')


@pytest.mark.parametrize(
    "target", [pod(), held_pod('[{"userAgent":"Other","key":"k"}]')], ids=["no gate", "listed already"]
)
def test_hold_does_nothing(target: Pod) -> None:
    edit = PodEdit(target, Intent.REFRESH, "x")
    add_blocker(edit, OTHER, NOW)
    assert not edit.changed


@pytest.mark.parametrize(
    "target",
    [
        pod(gates=BOTH, conditions={"KruisePodReady": ""}),
        held_pod("not json"),
        held_pod('[{"userAgent":"Other","key":"k"}]', "True"),
    ],
    ids=["no condition", "unreadable message", "listed but True"],
)
def test_hold_writes(target: Pod) -> None:
    edit = PodEdit(target, Intent.REFRESH, "x")
    add_blocker(edit, OTHER, NOW)
    condition = edit.condition("KruisePodReady")
    assert condition is not None
    assert (condition.status, condition.message) == ("False", '[{"userAgent":"Other","key":"k"}]')


def test_release_of_nothing() -> None:
    for target in (pod(), held_pod(PRE_UPDATE), pod(gates=BOTH)):
        edit = PodEdit(target, Intent.REFRESH, "x")
        remove_blocker(edit, OTHER, NOW)
        assert not edit.changed


def test_ensure_pod_ready() -> None:
    for target, changed in ((pod(), False), (pod(gates=BOTH), True), (held_pod(PRE_UPDATE), False)):
        edit = PodEdit(target, Intent.REFRESH, "x")
        ensure_pod_ready(edit, NOW)
        assert edit.changed is changed


@pytest.mark.parametrize(
    "conditions",
    [{"Ready": ""}, {"ContainersReady": "False"}, {"ContainersReady": ""}, {"Ready": "False"}],
    ids=["no Ready", "containers not ready", "containers unknown", "False already"],
)
def test_ready_is_left_alone(conditions: dict[str, Any]) -> None:
    edit = PodEdit(pod(conditions={"InPlaceUpdateReady": "False", **conditions}), Intent.REFRESH, "x")
    recompute_ready(edit, NOW)
    assert not edit.changed


def test_ready_names_every_failing_gate() -> None:
    edit = PodEdit(
        pod(gates=("InPlaceUpdateReady", "missing"), conditions={"InPlaceUpdateReady": "Unknown"}), Intent.REFRESH, "x"
    )
    recompute_ready(edit, NOW)
    condition = edit.condition("Ready")
    assert condition is not None
    assert condition.message == (
        'the status of pod readiness gate "InPlaceUpdateReady" is not "True", but Unknown, '
        'corresponding condition of pod readiness gate "missing" does not exist.'
    )


def test_edit_removes_what_a_condition_no_longer_says() -> None:
    old = {"InPlaceUpdateReady": {"value": "False", "reason": "StartInPlaceUpdate", "message": "m"}}
    edit = PodEdit(pod(conditions=old), Intent.REFRESH, "x")
    edit.set_condition(Condition(type="InPlaceUpdateReady", status="True"))
    (patch,) = patches(edit.chain())
    assert conditions_of(patch)["InPlaceUpdateReady"] == {
        "type": "InPlaceUpdateReady",
        "status": "True",
        "reason": None,
        "message": None,
    }


def test_edit_skips_what_is_so_already() -> None:
    edit = PodEdit(pod(labels={"a": "1"}, annotations={"b": "2"}, finalizers=["f"]), Intent.REFRESH, "x")
    edit.set_labels({"a": "1", "gone": None})
    edit.set_annotations({"b": "2"})
    edit.add_finalizers(["f"])
    assert not edit.changed
    edit.set_labels({"a": "2"})
    assert (edit.label("a"), edit.pod.metadata.labels["a"]) == ("2", "1")
    edit.set_labels({"a": "1"})
    assert not edit.changed


def test_edit_reads_back() -> None:
    edit = PodEdit(pod(labels={"a": "1"}, annotations={"b": "2"}), Intent.REFRESH, "x")
    edit.set_labels({"a": None})
    edit.set_annotations({"c": "3"})
    (patch,) = patches(edit.chain())
    assert (edit.label("a"), annotations_of(patch)) == (None, {"c": "3"})


def test_notices_go_with_the_writes() -> None:
    edit = PodEdit(pod(), Intent.REFRESH, "why", phase="scale")
    edit.set_condition(Condition(type="A", status="True"))
    edit.set_image("nginx", "b")
    first, second = patches(
        edit.chain(on_success=Event(reason="Ok", message=""), on_failure=Event(reason="No", message=""))
    )
    assert (first.on_success, second.on_success) == (None, Event(reason="Ok", message=""))
    assert first.on_failure == second.on_failure == Event(reason="No", message="")
    assert {first.cause, second.cause} == {"why"}
    assert {first.phase, second.phase} == {"scale"}
    assert (first.after_previous, second.after_previous) == (False, False)


def test_merge_metadata() -> None:
    edit = PodEdit(pod(labels={"a": "1"}, finalizers=["f"]), Intent.REFRESH, "x")
    edit.merge_metadata(
        {"labels": {"a": "1", "b": "2"}, "finalizers": ["g"], "$deleteFromPrimitiveList/finalizers": ["f"]}
    )
    edit.add_finalizers(["h"])
    (patch,) = patches(edit.chain())
    assert patch.body["metadata"] == {
        "labels": {"b": "2"},
        "finalizers": ["g", "h"],
        "$deleteFromPrimitiveList/finalizers": ["f"],
    }
