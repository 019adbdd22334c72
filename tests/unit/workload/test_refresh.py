"""Carrying pods on: grace, batches, readiness, lifecycle (common.md §9.6, §8.4; examples 13, 14, 19, 20, 25-28)."""

import base64
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.workload import Lifecycle
from flotilla_common.workload.inplace import refresh
from flotilla_common.workload.inplace.refresh import Refresh
from tests.unit.workload.build import (
    GRACE,
    LIFECYCLE,
    NOW,
    STATE,
    annotations_of,
    barrier,
    conditions_of,
    container,
    in_place,
    labels_of,
    patches,
    pod,
    state_in,
    status,
)

BOTH = ("InPlaceUpdateReady", "KruisePodReady")
HALF: dict[str, Any] = {
    "InPlaceUpdateReady": {"value": "False", "reason": "StartInPlaceUpdate"},
    "Ready": {"value": "False"},
}
MARKED = {"value": "False", "message": '[{"userAgent":"Lifecycle","key":"preUpdateHook"}]'}


def refreshed(target: Pod, *, lifecycle: Any = None, seconds: float = 0, **members: Any) -> Refresh:
    hooks = None if lifecycle is None else msgspec.convert(lifecycle, Lifecycle)
    settings = {name: members.pop(name) for name in ("gates", "server_version") if name in members}
    context = in_place(lifecycle=hooks, now=NOW + timedelta(seconds=seconds), **settings)
    return refresh(target, context, **({"on_target": True, "wanted": False} | members))


def update_state(**members: Any) -> str:
    state = {"revision": "sample-new", "updateTimestamp": NOW, "lastContainerStatuses": None, **members}
    return msgspec.json.encode(state).decode()


DONE = {STATE: update_state()}
IMAGE_PENDING = {STATE: update_state(lastContainerStatuses={"nginx": {"imageID": "id-1"}})}


def updating(annotations: dict[str, str], **members: Any) -> Pod:
    """Return a pod in an in-place update; its spec has the new image, its status the old one."""
    values: dict[str, Any] = {
        "state": "Updating",
        "conditions": HALF,
        "labels": {"controller-revision-hash": "sample-new"},
        "containers": [container(image="nginx:mainline")],
    }
    return pod(annotations=annotations, **(values | members))


def state_of(result: Refresh) -> str:
    return labels_of(patches(result.chain)[0]).get(LIFECYCLE, "")


def test_a_settled_pod_needs_nothing() -> None:
    assert refreshed(pod()) == refreshed(pod(state="", gates=())) == Refresh()


def test_a_new_pod_gets_everything_in_one_write() -> None:
    new = pod(state="PreparingNormal", gates=BOTH, conditions={"InPlaceUpdateReady": "", "Ready": "False"})
    result = refreshed(new)
    (patch,) = patches(result.chain)
    assert {kind: item["status"] for kind, item in conditions_of(patch).items()} == {
        "KruisePodReady": "True",
        "InPlaceUpdateReady": "True",
    }
    assert labels_of(patch) == {LIFECYCLE: "Normal"}
    assert (patch.uid, patch.resource_version) == ("uid-web", "")


def test_an_unscheduled_pod_waits() -> None:
    new = pod(state="PreparingNormal", gates=BOTH, node="", conditions={"InPlaceUpdateReady": "", "Ready": ""})
    assert refreshed(new) == Refresh()


def test_pre_normal_hook_does_not_need_a_node() -> None:
    new = pod(state="PreparingNormal", node="", labels={"ok": "1"}, conditions={"InPlaceUpdateReady": ""})
    result = refreshed(new, lifecycle={"preNormal": {"labelsHandler": {"ok": "1"}}})
    assert state_of(result) == "Normal"
    assert "InPlaceUpdateReady" in conditions_of(patches(result.chain)[0])


def test_pre_normal_hook_holds_the_state_but_not_the_gate() -> None:
    new = pod(state="PreparingNormal", conditions={"InPlaceUpdateReady": ""})
    result = refreshed(new, lifecycle={"preNormal": {"labelsHandler": {"ok": "1"}}})
    assert state_of(result) == ""
    assert set(conditions_of(patches(result.chain)[0])) == {"InPlaceUpdateReady"}


def test_backfill_travels_along() -> None:
    result = refreshed(pod(), backfill={"pod-template-hash": "old", LIFECYCLE: "ignored"})
    (patch,) = patches(result.chain)
    assert patch.body == {"metadata": {"labels": {"pod-template-hash": "old"}}}


def test_completion_is_one_write_on_exactly_this_version() -> None:
    result = refreshed(updating(IMAGE_PENDING, statuses=[status("nginx", "nginx:mainline", "id-2")]))
    (patch,) = patches(result.chain)
    assert conditions_of(patch)["InPlaceUpdateReady"]["status"] == "True"
    assert conditions_of(patch)["InPlaceUpdateReady"]["reason"] is None
    assert labels_of(patch) == {LIFECYCLE: "Normal"}
    assert patch.resource_version == "7"  # 28: a newer version may be in a newer update


def test_an_update_that_is_not_complete_waits() -> None:
    assert refreshed(updating(IMAGE_PENDING)) == Refresh()


@pytest.mark.parametrize(
    ("state", "lifecycle", "labels", "on_target", "expected"),
    [
        ("Updating", None, {}, True, "Normal"),
        ("Updating", {"preDelete": {"labelsHandler": {"a": "1"}}}, {}, True, "Updated"),
        ("Updating", {"inPlaceUpdate": {"labelsHandler": {"a": "1"}}}, {}, True, "Updated"),
        ("Updating", {"inPlaceUpdate": {"labelsHandler": {"a": "1"}}}, {"a": "1"}, True, "Normal"),
        ("Updating", {"inPlaceUpdate": {}}, {}, True, "Normal"),
        ("Updated", None, {}, True, "Normal"),
        ("Updated", {"preDelete": {"labelsHandler": {"a": "1"}}}, {}, True, "Normal"),
        ("Updated", {"inPlaceUpdate": {"labelsHandler": {"a": "1"}}}, {"a": "1"}, True, "Normal"),
        ("Updated", {"inPlaceUpdate": {"labelsHandler": {"a": "1"}}}, {}, True, ""),
        ("PreparingUpdate", {"inPlaceUpdate": {"labelsHandler": {"a": "1"}}}, {"a": "1"}, True, "Normal"),
        ("PreparingUpdate", {"inPlaceUpdate": {"labelsHandler": {"a": "1"}}}, {}, True, "Updated"),
        ("PreparingUpdate", None, {}, True, "Normal"),
        ("PreparingUpdate", {"inPlaceUpdate": {"labelsHandler": {"a": "1"}}}, {"a": "1"}, False, ""),
        ("PreparingNormal", None, {}, True, "Normal"),
        ("PreparingNormal", {"preNormal": {"labelsHandler": {"a": "1"}}}, {}, True, ""),
        ("PreparingDelete", None, {}, True, ""),
    ],
    ids=[
        "no lifecycle",
        "26 only preDelete",
        "hook gone",
        "hook kept",
        "empty hook",
        "updated, no lifecycle",
        "updated, other hooks",
        "hooked again",
        "waits to be hooked",
        "25 rolled back",
        "rolled back, unhooked",
        "rolled back, no lifecycle",
        "waits to be unhooked",
        "scheduled",
        "waits for preNormal",
        "on its way out",
    ],
)
def test_transitions(state: str, lifecycle: Any, labels: Any, on_target: bool, expected: str) -> None:
    result = refreshed(pod(state=state, labels=labels), lifecycle=lifecycle, on_target=on_target)
    assert (state_of(result) if result.chain else "") == expected


def test_25_the_mark_goes_with_the_state() -> None:
    held = pod(state="PreparingUpdate", labels={"a": "1"}, gates=BOTH, conditions={"KruisePodReady": MARKED})
    result = refreshed(held, lifecycle={"inPlaceUpdate": {"labelsHandler": {"a": "1"}, "markPodNotReady": True}})
    (patch,) = patches(result.chain)
    assert conditions_of(patch)["KruisePodReady"]["status"] == "True"
    assert labels_of(patch) == {LIFECYCLE: "Normal"}


def test_26_ends_in_two_passes() -> None:
    hooks = {"preDelete": {"labelsHandler": {"a": "1"}}}
    assert state_of(refreshed(updating(DONE), lifecycle=hooks)) == "Updated"
    assert state_of(refreshed(pod(state="Updated", annotations=DONE), lifecycle=hooks)) == "Normal"


@pytest.mark.parametrize(
    ("wanted", "state", "opens"),
    [(True, "Normal", False), (False, "Normal", True), (True, "PreparingUpdate", False), (True, "Updating", True)],
)
def test_a_half_started_pod(wanted: bool, state: str, opens: bool) -> None:
    result = refreshed(pod(state=state, conditions=HALF, annotations=DONE), wanted=wanted, on_target=False)
    assert bool(result.chain) is opens
    if opens:
        assert patches(result.chain)[0].resource_version == "7"


def test_a_half_started_pod_without_earlier_update_is_undone_conditionally() -> None:
    (patch,) = patches(refreshed(pod(conditions=HALF)).chain)
    assert patch.resource_version == "7"


@pytest.mark.parametrize("ready", ["True", "False"])
def test_a_ready_that_contradicts_the_gate_is_not_believed(ready: str) -> None:
    """The kubelet has not synced since the gate closed: a False may follow, even if we open the gate now."""
    (patch,) = patches(refreshed(pod(conditions=HALF | {"Ready": ready})).chain)
    written = {kind: one["status"] for kind, one in conditions_of(patch).items()}
    assert written == {"InPlaceUpdateReady": "True"} | ({"Ready": "False"} if ready == "True" else {})


def test_a_ready_beside_an_open_gate_is_left_alone() -> None:
    result = refreshed(pod(conditions={"InPlaceUpdateReady": {"value": "True", "reason": "x"}}))
    assert "Ready" not in conditions_of(patches(result.chain)[0])


def test_a_true_condition_with_a_reason_is_cleaned() -> None:
    result = refreshed(pod(conditions={"InPlaceUpdateReady": {"value": "True", "reason": "x"}}))
    assert conditions_of(patches(result.chain)[0])["InPlaceUpdateReady"]["reason"] is None


PATCH = base64.b64encode(b'{"metadata":{"labels":{"v":"b"}}}').decode()


def in_grace(**members: Any) -> Pod:
    grace = {
        "revision": "sample-new",
        "containerImages": {"nginx": "nginx:mainline"},
        "metaDataPatch": PATCH,
        "graceSeconds": 10,
    }
    annotations = {STATE: update_state(updateImages=True), GRACE: msgspec.json.encode(grace).decode()}
    return updating(annotations | members.pop("annotations", {}), containers=[container()], **members)


@pytest.mark.parametrize(("seconds", "wait"), [(0, 10), (3.2, 7), (9.01, 1)])
def test_19_grace_goes_on(seconds: float, wait: int) -> None:
    assert refreshed(in_grace(), seconds=seconds) == Refresh(wait_seconds=wait)


def test_19_grace_ends() -> None:
    result = refreshed(in_grace(), seconds=10)
    (patch,) = patches(result.chain)
    assert patch.body["spec"]["containers"] == [{"name": "nginx", "image": "nginx:mainline"}]
    assert labels_of(patch) == {"v": "b"}
    assert annotations_of(patch)[GRACE] is None
    state = state_in(patch)
    assert state["lastContainerStatuses"] == {"nginx": {"imageID": "id-1"}}
    assert state["updateTimestamp"] == "2024-03-01T08:00:00Z"
    assert (patch.resource_version, result.wait_seconds) == ("7", 0)


def test_20_grace_of_another_revision_is_dropped() -> None:
    result = refreshed(in_grace(labels={"controller-revision-hash": "sample-third"}), seconds=10)
    (patch,) = patches(result.chain)
    assert patch.body == {"metadata": {"annotations": {GRACE: None}}}


def test_grace_under_a_short_hash_label() -> None:
    assert refreshed(in_grace(labels={"controller-revision-hash": "new"})).wait_seconds == 10


@pytest.mark.parametrize(
    "annotations",
    [
        {GRACE: "{"},
        {STATE: "{"},
        {STATE: ""},
        {GRACE: '{"revision":"sample-new","metaDataPatch":"eyI="}'},
        {GRACE: '{"a":' * 20_000},
        {STATE: '{"nextContainerResources":' + '{"a":' * 1_000 + "1" + "}" * 1_001},
        {STATE: '{"updateTimestamp":"2024-03-01T07:59:50"}'},
        {STATE: '{"updateTimestamp":"-001-01-01T00:00:00Z"}'},
        {GRACE: f'{{"revision":"sample-new","graceSeconds":{10**30}}}'},
    ],
    ids=["grace", "state", "no state", "patch", "deep grace", "deep state", "no zone", "before time", "128 bits"],
)
def test_what_cannot_be_read_is_left_alone_and_named(annotations: dict[str, str]) -> None:
    result = refreshed(in_grace(annotations=annotations), seconds=10)
    assert result.chain == ()
    assert result.problem


def test_an_update_at_the_end_of_the_calendar_is_waited_for() -> None:
    at_the_end = '{"revision":"sample-new","updateTimestamp":"9999-12-31T23:59:59Z"}'
    assert refreshed(in_grace(annotations={STATE: at_the_end})).wait_seconds > 10**11


PAIR = [container("a", "a:2", env=[barrier(5)]), container("b", "b:1", env=[barrier(1)])]
FIRST_BATCH = {
    STATE: update_state(
        updateImages=True,
        lastContainerStatuses={"a": {"imageID": "a-1"}},
        nextContainerImages={"b": "b:2"},
        nextContainerResources={"b": {"requests": {"cpu": "2"}}},
        preCheckBeforeNext={"containersRequiredReady": ["a"]},
        containerBatchesRecord=[{"timestamp": NOW, "containers": ["a"]}],
    )
}


def test_13_the_next_batch() -> None:
    held = updating(FIRST_BATCH, containers=PAIR, statuses=[status("a", "a:2", "a-2"), status("b", "b:1", "b-1")])
    resize, patch = patches(refreshed(held, seconds=60).chain)
    assert resize.subresource == "resize"
    assert patch.body["spec"]["containers"] == [{"name": "b", "image": "b:2"}]
    state = state_in(patch)
    assert state["lastContainerStatuses"] == {"a": {"imageID": "a-1"}, "b": {"imageID": "b-1"}}
    assert [batch["containers"] for batch in state["containerBatchesRecord"]] == [["a"], ["b"]]
    assert "nextContainerImages" not in state
    assert "preCheckBeforeNext" not in state


@pytest.mark.parametrize(
    "first",
    [status("a", "a:2", "a-2", ready=False), status("a", "a:1", "a-1"), status("x", "a:2", "a-2")],
    ids=["14 crash loop", "not restarted", "no status"],
)
def test_14_the_next_batch_waits(first: Any) -> None:
    held = updating(FIRST_BATCH, containers=PAIR, statuses=[first, status("b", "b:1", "b-1")])
    assert refreshed(held) == Refresh()


def test_the_new_pod_write_does_not_hide_a_problem() -> None:
    broken = pod(state="", annotations={"inplace-update-state": "[]"}, gates=())
    assert "inplace-update-state" in refreshed(broken).problem
