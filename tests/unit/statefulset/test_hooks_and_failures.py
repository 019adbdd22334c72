"""Lifecycle hooks, specified deletion under a hook, and refusals (statefulset.md §8.3, §8.4)."""

import msgspec
import pytest

from flotilla_common.control.plan import Create, Patch
from tests.testkit.plans import codes
from tests.testkit.tables import cases
from tests.unit.statefulset.build import OWNER, Builder, planned, pod, pods, revision, sts, summary

DELETE, UPDATE, NORMAL = "preDelete", "inPlaceUpdate", "preNormal"


def held(*ordinals: int, by: str) -> dict[int, dict[str, str]]:
    return {ordinal: {"hold": by} for ordinal in ordinals}


ROWS: list[tuple[str, Builder, str, dict[int, dict[str, str]], list[str]]] = [
    ("59-held", sts(2, "A").hook(DELETE), "0A 1A 2A", held(0, 1, 2, by=DELETE), ["PreparingDelete 2"]),
    ("59-waits", sts(2, "A").hook(DELETE), "0A 1A 2A:PreparingDelete", held(2, by=DELETE), []),
    ("59-released", sts(2, "A").hook(DELETE), "0A 1A 2A:PreparingDelete", {}, ["delete 2"]),
    (
        "59-ordered-one-at-a-time",
        sts(1, "A").hook(DELETE).ordered(),
        "0A 1A 2A:PreparingDelete",
        held(1, 2, by=DELETE),
        [],
    ),
    ("59-ordered-released", sts(1, "A").hook(DELETE).ordered(), "0A 1A 2A:PreparingDelete", {}, ["delete 2"]),
    ("60-waits", sts(2, "A").hook(NORMAL).ordered(), "0A:PreparingNormal", {}, []),
    ("60-satisfied", sts(2, "A").hook(NORMAL).ordered(), "0A:PreparingNormal", held(0, by=NORMAL), ["Normal 0"]),
    ("60-then", sts(2, "A").hook(NORMAL).ordered(), "0A", held(0, by=NORMAL), ["create 1A"]),
    ("61-asks", sts(1).in_place().hook(UPDATE), "0A", held(0, by=UPDATE), ["PreparingUpdate 0"]),
    ("61-waits", sts(1).in_place().hook(UPDATE), "0A:PreparingUpdate", held(0, by=UPDATE), []),
    ("61-updates", sts(1).in_place().hook(UPDATE), "0A:PreparingUpdate", {}, ["update 0B"]),
    ("61-done", sts(1).in_place().hook(UPDATE), "0B:Updating", {}, ["Updated 0"]),
    ("61-hooked-again", sts(1).in_place().hook(UPDATE), "0B:Updated", held(0, by=UPDATE), ["Normal 0"]),
    ("61-counts", sts(2).in_place().hook(UPDATE), "0A 1A:PreparingUpdate", held(0, 1, by=UPDATE), []),
    ("61-goes-on-in-order", sts(2).in_place().hook(UPDATE).ordered(), "0A 1A:PreparingUpdate", {}, ["update 1B"]),
    (
        "61-goes-on-behind-another-update",
        sts(2, "C").in_place().hook(UPDATE),
        "0A:PreparingUpdate 1B",
        {},
        ["update 0C"],
    ),
    ("61-by-another-pod", sts(2).hook(UPDATE).ordered(), "0A 1A:PreparingUpdate", held(1, by=UPDATE), ["delete 1"]),
    ("61-not-while-paused", sts(1).in_place().hook(UPDATE).rolling(paused=True), "0A:PreparingUpdate", {}, []),
    ("62-back", sts(1, "A").in_place().hook(UPDATE), "0A:PreparingUpdate", {}, ["Updated 0"]),
    ("62-back-hooked", sts(1, "A").in_place().hook(UPDATE), "0A:PreparingUpdate", held(0, by=UPDATE), ["Normal 0"]),
    (
        "a-raised-partition-needs-no-preparation",
        sts(2).p(2).in_place().hook(UPDATE),
        "0A 1A:PreparingUpdate",
        {},
        ["Updated 1"],
    ),
    (
        "a-raised-partition-and-still-hooked",
        sts(2).p(2).in_place().hook(UPDATE),
        "0A 1A:PreparingUpdate",
        held(1, by=UPDATE),
        ["Normal 1"],
    ),
    ("on-delete-needs-none", sts(1).on_delete().hook(UPDATE), "0A:PreparingUpdate", held(0, by=UPDATE), ["Normal 0"]),
    ("paused-may-go-on", sts(1).in_place().rolling(paused=True).hook(UPDATE), "0A:PreparingUpdate", {}, []),
    ("63", sts(1, "C").in_place().hook(UPDATE), "0B:Updated", {}, ["PreparingUpdate 0"]),
    (
        "a-held-pod-is-wanted-again",
        sts(3, "A").hook(DELETE),
        "0A 1A 2A:PreparingDelete",
        held(2, by=DELETE),
        ["PreparingNormal 2"],
    ),
    (
        "a-recreate-update-under-the-hook-goes-on-in-order",
        sts(2).hook(DELETE).ordered(),
        "0A 1A:PreparingDelete",
        {},
        ["delete 1"],
    ),
    (
        "a-recreate-update-waits-for-the-hook",
        sts(2).hook(DELETE).ordered(),
        "0A 1A:PreparingDelete",
        held(1, by=DELETE),
        [],
    ),
    ("specified-under-the-hook", sts(2, "A").hook(DELETE), "0A 1A*:PreparingDelete", {}, ["delete 1"]),
    ("paused-holds-still", sts(2).hook(DELETE).rolling(paused=True), "0A 1A:PreparingDelete", {}, []),
]


@pytest.mark.parametrize(("builder", "there", "labels", "writes"), cases(ROWS))
def test_hooks(builder: Builder, there: str, labels: dict[int, dict[str, str]], writes: list[str]) -> None:
    assert summary(planned(builder, pods(there, labels=labels))) == writes


@pytest.mark.parametrize(("labels", "state"), [({}, "PreparingNormal"), ({"hold": NORMAL}, "Normal")])
def test_a_new_pod_is_normal_unless_a_hook_asks_for_more(labels: dict[str, str], state: str) -> None:
    builder = sts(1, "A").hook(NORMAL)
    builder.spec["template"]["metadata"]["labels"].update(labels)
    (create,) = (one for one in planned(builder, revisions=[]).actions if one.resource.kind == "Pod")
    assert isinstance(create, Create)
    assert create.body["metadata"]["labels"]["lifecycle.apps.kruise.io/state"] == state


def test_an_update_out_of_its_grace_period_goes_on() -> None:
    """A pod in grace keeps its place, and a newer revision waits until the older one has been written."""
    grace = {"apps.kruise.io/inplace-update-grace": '{"revision":"w-B","graceSeconds":10}'}
    state = {"apps.kruise.io/inplace-update-state": '{"revision":"w-B","updateTimestamp":"2026-03-01T11:59:58Z"}'}
    waiting = pod(0, "B", "!", "Updating", annotations=grace | state)
    result = planned(sts(1, "C").in_place(grace=10), [waiting])
    assert summary(result) == []
    assert "WaitingForGracePeriod" in codes(result)


def test_a_foreign_pod_of_the_name_stops_what_is_behind_it() -> None:
    """Example 50: no write is wasted on a name that is taken."""
    result = planned(sts(3, "A"), "", foreign=["w-1"])
    assert summary(result) == ["create 0A"]
    assert result.errors == (("create", 'pods "w-1" already exists'),)
    assert result.events == ()
    assert result.status is not None
    (condition,) = result.status.body["status"]["conditions"]
    assert condition["type"] == "FailedCreatePod"
    assert condition["message"] == 'StatefulPodControl failed to create Pod error: pods "w-1" already exists'


def test_a_failed_create_is_tried_alone() -> None:
    """Example 54: what refuses one pod will refuse the others."""
    result = planned(sts(5, "A"), "0A 1A", failures={"create": "exceeded quota"})
    assert summary(result) == ["create 2A"]


def test_a_failed_claim_is_named_in_the_condition() -> None:
    result = planned(sts(1, "A"), "0A", failures={"claim data-w-1": "exceeded quota"})
    assert result.status is not None
    (condition,) = result.status.body["status"]["conditions"]
    expected = "StatefulPodControl failed to create Pod error: failed to create PVC data-w-1: exceeded quota"
    assert condition["message"] == expected


def test_a_pod_whose_labels_left_the_selector_is_released() -> None:
    """Example 51."""
    there = pods("0A 1A", labels={1: {"app": "other"}})
    result = planned(sts(2, "A"), there)
    assert summary(result) == ["owner 1"]
    assert ("create", 'pods "w-1" already exists') in result.errors


def test_an_orphan_of_the_name_is_taken_in() -> None:
    """Example 52: first the apiserver confirms that the set is as it was planned with."""
    result = planned(sts(2, "A"), [*pods("0A"), pod(1, "C", owners=[])])
    assert summary(result) == ["patch StatefulSet w", "owner 1"]
    sure = result.actions[0]
    assert isinstance(sure, Patch)
    assert (sure.body, sure.resource_version, sure.uid, sure.subresource) == ({}, "7", "uid-w", "status")


@pytest.mark.parametrize("name", ["w-01", "w-007", "w-2147483648", "w-", "w-1x"])
def test_a_name_that_only_looks_like_one_of_its_pods_is_left_alone(name: str) -> None:
    """It would be released in the next pass, and so on without end."""
    lookalike = pod(1, "A", owners=[])
    lookalike = msgspec.structs.replace(lookalike, metadata=msgspec.structs.replace(lookalike.metadata, name=name))
    assert summary(planned(sts(1, "A"), [*pods("0A"), lookalike])) == []


def test_orphaned_revisions_are_taken_in() -> None:
    """A set that was deleted without its pods, and created again, keeps its history, and no pod is touched."""
    stored = revision("A", 1)
    stored.metadata.owner_references.clear()
    result = planned(sts(1, "A"), [pod(0, "A", owners=[])], revisions=[stored])
    assert summary(result) == ["patch StatefulSet w", "patch ControllerRevision w-A", "patch StatefulSet w", "owner 0"]


def test_a_set_that_is_deleted_only_writes_its_status() -> None:
    """Example 55."""
    result = planned(sts(3).deleting().hook(DELETE), pods("0A 1A 2A 3A"))
    assert summary(result) == []
    assert codes(result) == {"Terminating"}
    assert result.status is not None
    assert result.status.body["status"]["replicas"] == 4


def test_a_pod_without_its_identity_label_gets_it_back() -> None:
    there = pods("0A 1A")
    there[1].metadata.labels.pop("statefulset.kubernetes.io/pod-name")
    (label,) = planned(sts(2, "A"), there).actions
    assert isinstance(label, Patch)
    assert label.body["metadata"]["labels"] == {"statefulset.kubernetes.io/pod-name": "w-1"}
    assert label.on_success is not None
    assert label.on_success.message == "update Pod w-1 in StatefulSet w successful"


def test_a_pod_of_another_controller_is_nobody_of_ours() -> None:
    foreign = pod(1, "A", owners=[{**OWNER, "controller": False}, {**OWNER, "kind": "X", "uid": "x"}])
    assert summary(planned(sts(1, "A"), [*pods("0A"), foreign])) == []


def test_a_half_begun_update_that_does_not_go_on_is_undone() -> None:
    """OrderedReady waits for this very pod, and no update reaches it while they are paused."""
    half = pod(1, "A", "!")
    half.status.conditions[0] = msgspec.structs.replace(
        half.status.conditions[0], status="False", reason="StartInPlaceUpdate"
    )
    result = planned(sts(2).ordered().in_place().rolling(paused=True), [*pods("0A"), half])
    assert summary(result) == ["refresh 1"]
    assert summary(planned(sts(2).ordered().in_place(), [*pods("0A"), half])) == ["update 1B"]


def test_a_claim_template_that_nobody_can_mean_is_refused() -> None:
    deep: dict[str, object] = {}
    for _ in range(200):
        deep = {"a": deep}
    result = planned(sts(1, "A").set(volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": deep}]))
    assert codes(result) == {"InvalidTemplate"}
    assert "spec.volumeClaimTemplates: nested" in result.reasons[0].message
