"""Ownership: we make things only for owners that live, and touch only what is theirs."""

from collections.abc import Iterator

from flotilla_common.api.meta import controller_of
from flotilla_common.api.resources import CLAIM, POD, REVISION
from flotilla_common.control.plan import Json
from flotilla_common.workload.recipe import belongs
from tests.simulation.oracles.scene import Scene, Step

DEPENDENTS = (POD, CLAIM, REVISION)


def living_owner(scene: Scene, step: Step) -> Iterator[str]:
    """Nothing is made, changed or deleted for an owner whose deletion has begun (cloneset.md §4.2)."""
    workload = step.workload
    if not step.ours or step.version.resource not in DEPENDENTS:
        return
    if workload is None:
        if step.version.before is None:
            yield f"makes {step.version.name} for an owner that does not exist"
    elif workload.ended is not None and workload.ended < scene.since:
        yield f"writes {step.version.name}, though {workload.name} is being deleted"


def only_own_pods(scene: Scene, step: Step) -> Iterator[str]:
    """A pod that nobody of ours controls, or that has left the selector, is never deleted by us."""
    del scene
    if not step.ours or step.version.resource != POD or not step.marked_deleted or step.before is None:
        return
    workload = step.workload
    if workload is None:
        yield "deletes a pod that no workload controls"
    elif not workload.terms.selector.matches(step.before.metadata.labels):
        yield "deletes a pod that its workload's selector does not match"


def release_and_adopt(scene: Scene, step: Step) -> Iterator[str]:
    """Pods are let go only when their labels left the selector, and taken in only when they refer to us already, have
    a name of ours, or nodes are to have one pod each."""
    before, pod, workload = step.before, step.pod, step.workload
    if not step.ours or before is None or pod is None or workload is None:
        return
    old, new = controller_of(before.metadata), controller_of(pod.metadata)
    matches = [terms.selector.matches(before.metadata.labels) for terms in workload.terms_lately(scene.since)]
    if old is not None and new is None and all(matches):
        yield f"lets a pod go that {workload.name} selects"
    if old is None and new is not None:
        known = any(reference.uid == new.uid for reference in before.metadata.owner_references)
        known |= any(one.of(before.metadata.name) >= 0 for one in workload.numbered_lately(scene.since))
        known |= any(terms.per_node is not None for terms in workload.terms_lately(scene.since))
        if not known or not any(matches):
            yield f"takes a pod in that does not belong to {workload.name}"


def one_revision_per_template(scene: Scene, step: Step) -> Iterator[str]:
    """No second ControllerRevision of one template, and none deleted that a pod still needs (common.md §7)."""
    workload, version = step.workload, step.version
    if not step.ours or version.resource != REVISION or workload is None:
        return
    if version.before is None and version.after is not None:
        others = [item for item in scene.revisions_of(workload) if item["metadata"]["uid"] != version.uid]
        twins = [item["metadata"]["name"] for item in others if item.get("data") == version.after.get("data")]
        if twins:
            yield f"makes a second revision of the template of {twins[0]}"
    elif step.marked_deleted and any(belongs(label, version.name) for label in _live(scene, step)):
        yield f"deletes revision {version.name}, which is in use"


def _live(scene: Scene, step: Step) -> set[str]:
    workload = step.workload
    assert workload is not None
    revisions: list[Json] = scene.revisions_of(workload)
    newest = {str(item["metadata"]["name"]) for item in revisions[-1:]}
    return newest | {pod.revision for pod in workload.active()} | {workload.terms.current_revision}
