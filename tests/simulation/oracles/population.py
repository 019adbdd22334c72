"""Numbers: maxSurge, one pod per instance, and partition.

Checked at each commit of ours that adds a pod or moves one to the update revision; users may change the numbers as they
like.
"""

from collections import Counter
from collections.abc import Iterator

from flotilla_common.api import keys
from flotilla_common.api.core import Pod
from flotilla_common.workload.revision_codec import belongs
from tests.simulation.oracles.view import Commit, View, Workload, instance_of

PREPARING_DELETE = "PreparingDelete"


def max_surge(view: View, commit: Commit) -> Iterator[str]:
    """Check that a create of ours leaves at most replicas + maxSurge active pods (cloneset.md §4.3)."""
    workload = commit.workload
    if workload is None or not commit.makes_a_pod or workload.ended is not None:
        return
    active = list(workload.active())
    preparing = sum(pod.state == PREPARING_DELETE for pod in active)
    spared, most = 0, 0
    for terms in workload.recent_terms(view.since):
        spared = max(spared, preparing if terms.spares_preparing else 0)
        most = max(most, terms.replicas + terms.max_surge)
    if len(active) - spared > most:
        yield f"makes pod number {len(active) - spared} of {workload.name}, {most} may be"


def one_pod_per_instance(view: View, commit: Commit) -> Iterator[str]:
    """Check that no two active pods share an instance id: they would share their claims."""
    del view
    workload = commit.workload
    if workload is None or not commit.makes_a_pod:
        return
    for instance, count in Counter(map(instance_of, workload.active())).items():
        if count > 1:
            yield f"{count} pods of {workload.name} have the instance id {instance!r}"


def partition(view: View, commit: Commit) -> Iterator[str]:
    """Check that we bring at most replicas - partition pods to the update revision (cloneset.md §4.8)."""
    workload, update = commit.workload, moved_to(view, commit)
    if workload is None or not update:
        return
    new = [pod for pod in workload.active() if belongs(pod.revision, update) and not _leaving(workload, pod)]
    texts: list[str] = []
    for terms in workload.recent_terms(view.since):
        updated, most = sum(terms.wants(pod.metadata.name) for pod in new), terms.replicas - terms.partition
        if updated <= most:
            return
        texts.append(f"moves pod number {updated} of {workload.name} to {update}, the partition lets {most} through")
    yield from texts[-1:]


def moved_to(view: View, commit: Commit) -> str:
    """Return the update revision, if we create a pod of it or move one to it under a partition."""
    workload, pod, before = commit.workload, commit.pod, commit.before
    if workload is None or not commit.ours or pod is None or workload.ended is not None:
        return ""
    revisions = view.revisions_of(workload)
    if len(revisions) < 2:
        return ""  # everything is new while there is nothing old
    update = str(revisions[-1]["metadata"]["name"])
    moved = belongs(pod.revision, update) and not (before and belongs(before.revision, update))
    lately = workload.recent_terms(view.since)
    if not moved or any(belongs(update, terms.current_revision or update) for terms in lately):
        return ""  # they are kept on the current revision; when that is the update revision, on this one
    return update


def _leaving(workload: Workload, pod: Pod) -> bool:
    marked = keys.SPECIFIED_DELETE_LABEL in pod.metadata.labels or pod.metadata.name in workload.terms.to_delete
    return marked or pod.state == PREPARING_DELETE
