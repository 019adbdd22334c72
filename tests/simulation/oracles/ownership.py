"""Ownership: we create objects only for owners that are not being deleted, and touch only our own."""

from collections.abc import Iterator

from flotilla_common.api.meta import controller_of
from flotilla_common.api.resources import CLAIM, POD, REVISION
from flotilla_common.control.plan import Json
from flotilla_common.workload.revision_codec import belongs
from tests.simulation.oracles.view import Commit, View

DEPENDENTS = (POD, CLAIM, REVISION)


def living_owner(view: View, commit: Commit) -> Iterator[str]:
    """Check that nothing is created, changed or deleted for an owner in deletion (cloneset.md §4.2)."""
    workload = commit.workload
    if not commit.ours or commit.version.resource not in DEPENDENTS:
        return
    if workload is None:
        if commit.version.before is None:
            yield f"makes {commit.version.name} for an owner that does not exist"
    elif workload.ended is not None and workload.ended < view.since:
        yield f"writes {commit.version.name}, though {workload.name} is being deleted"


def only_own_pods(view: View, commit: Commit) -> Iterator[str]:
    """Check that we delete no pod that we do not control, or that has left the selector."""
    del view
    if not commit.ours or commit.version.resource != POD or not commit.marked_deleted or commit.before is None:
        return
    workload = commit.workload
    if workload is None:
        yield "deletes a pod that no workload controls"
    elif not workload.terms.selector.matches(commit.before.metadata.labels):
        yield "deletes a pod that its workload's selector does not match"


def release_and_adopt(view: View, commit: Commit) -> Iterator[str]:
    """Check the adoption and release of pods.

    Pods are released only when their labels leave the selector, and adopted only when they refer to us already, have a
    name of ours, or the workload has one pod per node.
    """
    before, pod, workload = commit.before, commit.pod, commit.workload
    if not commit.ours or before is None or pod is None or workload is None:
        return
    old, new = controller_of(before.metadata), controller_of(pod.metadata)
    matches = [terms.selector.matches(before.metadata.labels) for terms in workload.recent_terms(view.since)]
    if old is not None and new is None and all(matches):
        yield f"lets a pod go that {workload.name} selects"
    if old is None and new is not None:
        known = any(reference.uid == new.uid for reference in before.metadata.owner_references)
        known |= any(one.of(before.metadata.name) >= 0 for one in workload.recent_numbered(view.since))
        known |= any(terms.per_node is not None for terms in workload.recent_terms(view.since))
        if not known or not any(matches):
            yield f"takes a pod in that does not belong to {workload.name}"


def one_revision_per_template(view: View, commit: Commit) -> Iterator[str]:
    """Check that a template has no second ControllerRevision, and that none in use is deleted (common.md §7)."""
    workload, version = commit.workload, commit.version
    if not commit.ours or version.resource != REVISION or workload is None:
        return
    if version.before is None and version.after is not None:
        others = [item for item in view.revisions_of(workload) if item["metadata"]["uid"] != version.uid]
        twins = [item["metadata"]["name"] for item in others if item.get("data") == version.after.get("data")]
        if twins:
            yield f"makes a second revision of the template of {twins[0]}"
    elif commit.marked_deleted and any(belongs(label, version.name) for label in _live(view, commit)):
        yield f"deletes revision {version.name}, which is in use"


def _live(view: View, commit: Commit) -> set[str]:
    workload = commit.workload
    assert workload is not None
    revisions: list[Json] = view.revisions_of(workload)
    newest = {str(item["metadata"]["name"]) for item in revisions[-1:]}
    return newest | {pod.revision for pod in workload.active()} | {workload.terms.current_revision}
