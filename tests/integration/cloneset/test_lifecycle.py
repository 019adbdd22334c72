"""Lifecycle hooks: pods that wait for their users before they go, change, or count (common.md §8)."""

import pytest

from tests.support.workspace import (
    Workspace,
    available,
    cloneset,
    condition,
    identity,
    image,
    is_ready,
    restarts,
    revision_of,
    state,
    terminating,
)
from tests.testkit.documents import Json

BLOCKER = "example.io/unready-blocker"
BLOCK_LABEL = "example.io/block-unready"
BY_FINALIZER: Json = {"finalizersHandler": [BLOCKER]}
BY_LABEL: Json = {"labelsHandler": {BLOCK_LABEL: "true"}}
HELD_BY_FINALIZER: Json = {"metadata": {"finalizers": [BLOCKER]}}
HELD_BY_LABEL: Json = {"metadata": {"labels": {BLOCK_LABEL: "true"}}}
IN_PLACE: Json = {"podUpdatePolicy": "InPlaceIfPossible"}


def started(space: Workspace, replicas: int, lifecycle: Json, template: Json, **arguments: object) -> list[str]:
    """Apply a CloneSet with hooks, whose template puts them on the pods, and name the ready pods."""
    manifest = cloneset(replicas, lifecycle=lifecycle, **arguments)
    metadata = manifest["spec"]["template"]["metadata"]
    metadata["labels"] |= template["metadata"].get("labels", {})
    metadata["finalizers"] = template["metadata"].get("finalizers", [])
    space.apply(manifest)
    space.settled(replicas=replicas, availableReplicas=replicas)
    return sorted(space.pods)


def in_state(space: Workspace, wanted: str) -> list[str]:
    return sorted(name for name, pod in space.pods.items() if state(pod) == wanted)


def test_new_pods_become_normal(space: Workspace):
    space.apply(cloneset(2))
    space.settled(availableReplicas=2)
    first = {name: next(event.object for event in space.history() if event.object["metadata"]["name"] == name)
             for name in space.pods}  # fmt: skip
    assert {state(pod) for pod in first.values()} == {"PreparingNormal"}
    space.until(lambda: {state(pod) for pod in space.pods.values()} == {"Normal"})
    assert all("lifecycle.apps.kruise.io/timestamp" in pod["metadata"]["annotations"] for pod in space.pods.values())


@pytest.mark.parametrize("unhook", ["finalizer", "label"])
def test_scale_in_waits_for_the_hook(space: Workspace, unhook: str):
    hook, held = (BY_FINALIZER, HELD_BY_FINALIZER) if unhook == "finalizer" else (BY_LABEL, HELD_BY_LABEL)
    before = started(space, 3, {"preDelete": hook}, held)
    space.scale(2)
    space.until(lambda: len(in_state(space, "PreparingDelete")) == 1)
    status = space.settled(replicas=3, readyReplicas=3, availableReplicas=2)
    assert status["updatedReplicas"] == 3
    (victim,) = in_state(space, "PreparingDelete")
    assert is_ready(space.pod(victim))
    if unhook == "finalizer":
        space.set_finalizers(victim)
    else:
        space.label(victim, f"{BLOCK_LABEL}-")
    space.settled(replicas=2, availableReplicas=2)
    assert sorted(space.pods) == [name for name in before if name != victim]


def test_an_unwanted_deletion_is_cancelled(space: Workspace):
    before = started(space, 3, {"preDelete": BY_FINALIZER}, HELD_BY_FINALIZER)
    space.scale(2)
    space.until(lambda: len(in_state(space, "PreparingDelete")) == 1)
    space.scale(3)
    space.settled(replicas=3, availableReplicas=3)
    assert sorted(space.pods) == before
    assert in_state(space, "Normal") == before
    assert len([event for event in space.history() if event.type == "ADDED"]) == 3


def test_a_pod_marked_not_ready_for_deletion_does_not_come_back(space: Workspace):
    before = started(space, 3, {"preDelete": BY_LABEL | {"markPodNotReady": True}}, HELD_BY_LABEL)
    space.scale(2)
    space.until(lambda: [is_ready(space.pod(name)) for name in in_state(space, "PreparingDelete")] == [False])
    (victim,) = in_state(space, "PreparingDelete")
    found = condition(space.pod(victim), "KruisePodReady")
    assert (found["status"], found["message"]) == ("False", '[{"userAgent":"Lifecycle","key":"preDeleteHook"}]')
    space.scale(3)
    space.settled(replicas=3, readyReplicas=2)
    assert in_state(space, "PreparingDelete") == [victim]
    space.label(victim, f"{BLOCK_LABEL}-")
    space.settled(replicas=3, availableReplicas=3)
    assert len(set(before) & set(space.pods)) == 2


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_a_specified_pod_in_its_hook_can_be_replaced_at_once(space: Workspace, version: str):
    """By a label in v1alpha1 and by a field in v1beta1: the replacement does not wait for the user."""
    manifest = cloneset(3, version=version, lifecycle={"preDelete": BY_FINALIZER})
    manifest["spec"]["template"]["metadata"]["finalizers"] = [BLOCKER]
    if version == "v1alpha1":
        manifest["metadata"]["labels"] = {"apps.kruise.io/cloneset-scaling-exclude-preparing-delete": "true"}
    else:
        manifest["spec"]["scaleStrategy"] = {"excludePreparingDelete": True}
    space.apply(manifest)
    space.settled(availableReplicas=3)
    victim = min(space.pods)
    space.label(victim, "apps.kruise.io/specified-delete=true")
    space.settled(replicas=4, availableReplicas=3)
    assert in_state(space, "PreparingDelete") == [victim]
    space.set_finalizers(victim)
    space.until(lambda: victim not in space.pods)
    space.settled(replicas=3, availableReplicas=3)


def test_a_deletion_by_hand_asks_no_hook(space: Workspace):
    before = started(space, 2, {"preDelete": BY_FINALIZER}, HELD_BY_FINALIZER)
    space.kubectl("delete", "pod", before[0], "--wait=false")
    space.until(lambda: len(space.pods) == 3 and sum(map(available, space.pods.values())) == 2)
    assert terminating(space.pod(before[0]))
    space.until(lambda: state(space.pod(before[0])) == "Normal")
    space.set_finalizers(before[0])
    space.until(lambda: before[0] not in space.pods)


def test_in_place_update_waits_before_and_after(space: Workspace):
    """Unhook to let the update begin, hook again to let the pod serve."""
    before = started(space, 1, {"inPlaceUpdate": BY_FINALIZER}, HELD_BY_FINALIZER, strategy=IN_PLACE)
    (name,) = before
    old = identity(space.pod(name))
    start = space.now()
    space.set_image("nginx:mainline")
    space.until(lambda: state(space.pod(name)) == "PreparingUpdate")
    assert image(space.pod(name)) == "nginx:alpine"
    assert revision_of(space.pod(name)) == space.settled(updatedReplicas=0, replicas=1)["currentRevision"]
    assert is_ready(space.pod(name))
    space.set_finalizers(name)
    space.until(lambda: state(space.pod(name)) == "Updated" and is_ready(space.pod(name)))
    space.settled(updatedReadyReplicas=1, availableReplicas=0)
    assert restarts(space.pod(name)) == 1
    space.set_finalizers(name, BLOCKER)
    space.settled(updatedAvailableReplicas=1)
    states = list(dict.fromkeys(state(event.object) for event in space.history(start)))
    assert states == ["PreparingUpdate", "Updating", "Updated", "Normal"]
    assert identity(space.pod(name)) == old


def test_a_pod_marked_not_ready_for_its_update_serves_again_after_it(space: Workspace):
    hook = {"inPlaceUpdate": BY_LABEL | {"markPodNotReady": True}}
    (name,) = started(space, 1, hook, HELD_BY_LABEL, strategy=IN_PLACE)
    space.set_image("nginx:mainline")
    space.until(lambda: state(space.pod(name)) == "PreparingUpdate" and not is_ready(space.pod(name)))
    found = condition(space.pod(name), "KruisePodReady")
    assert (found["status"], found["message"]) == ("False", '[{"userAgent":"Lifecycle","key":"preUpdateHook"}]')
    space.label(name, f"{BLOCK_LABEL}=ready-to-go")
    space.until(lambda: state(space.pod(name)) == "Updated" and is_ready(space.pod(name)))
    assert condition(space.pod(name), "KruisePodReady")["status"] == "True"
    space.label(name, f"{BLOCK_LABEL}=true")
    space.settled(updatedAvailableReplicas=1)


def test_an_updated_pod_is_hooked_again_for_the_next_update(space: Workspace):
    (name,) = started(space, 1, {"inPlaceUpdate": BY_FINALIZER}, HELD_BY_FINALIZER, strategy=IN_PLACE)
    space.set_image("nginx:mainline")
    space.until(lambda: state(space.pod(name)) == "PreparingUpdate")
    space.set_finalizers(name)
    space.until(lambda: state(space.pod(name)) == "Updated")
    space.set_image("nginx:latest")
    space.until(lambda: state(space.pod(name)) == "PreparingUpdate")
    assert space.pod(name)["metadata"]["finalizers"] == [BLOCKER]
    space.set_finalizers(name)
    space.until(lambda: state(space.pod(name)) == "Updated" and image(space.pod(name)) == "nginx:latest")


def test_a_rollback_frees_pods_that_still_wait(space: Workspace):
    (name,) = started(space, 1, {"inPlaceUpdate": BY_LABEL}, HELD_BY_LABEL, strategy=IN_PLACE)
    space.set_image("nginx:mainline")
    space.until(lambda: state(space.pod(name)) == "PreparingUpdate")
    space.set_image("nginx:alpine")
    space.settled(updatedAvailableReplicas=1)
    assert state(space.pod(name)) == "Normal"
    assert restarts(space.pod(name)) == 0


def test_a_new_pod_counts_when_its_handlers_are_there(space: Workspace):
    """preNormal: ready, but not available, until all labels and finalizers have come."""
    hook = {"preNormal": BY_LABEL | BY_FINALIZER}
    space.apply(cloneset(1, lifecycle=hook))
    space.settled(readyReplicas=1, availableReplicas=0)
    (name,) = space.pods
    space.label(name, f"{BLOCK_LABEL}=true")
    space.until(lambda: BLOCK_LABEL in space.pod(name)["metadata"]["labels"])
    assert state(space.pod(name)) == "PreparingNormal"
    space.set_finalizers(name, BLOCKER)
    space.settled(availableReplicas=1)
    assert state(space.pod(name)) == "Normal"
    space.set_finalizers(name)
    space.until(lambda: "finalizers" not in space.pod(name)["metadata"])
    assert state(space.pod(name)) == "Normal"
