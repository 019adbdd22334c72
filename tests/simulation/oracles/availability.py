"""Availability: writes of ours keep as many pods in service as needed, and no pod serves while its containers change.

`maxUnavailable` binds the controller, not the cluster: nodes die and users delete pods. So each commit of ours that
takes an available pod out of service is checked against the pods that are left; pods that others took within the
visibility lag count as if they were still there.
"""

from collections.abc import Iterator, Sequence

from flotilla_common.api import keys
from flotilla_common.api.core import Pod
from tests.simulation.oracles.view import Commit, View, Workload, follows_our_gates, lost


def max_unavailable(view: View, commit: Commit) -> Iterator[str]:
    """Check that replicas - maxUnavailable pods stay available through every commit of ours (cloneset.md §4.3)."""
    workload = commit.workload
    if workload is None or not commit.ours or workload.ended is not None or not lost(view, workload, commit):
        return
    left = [pod for pod in workload.pods.values() if workload.available(pod, view.now)]
    for count, least in _too_few(view, workload, commit, left):
        yield f"takes a pod of {workload.name} out of service: {count} are left, {least} must be"


def ready_as_listed(view: View, commit: Commit) -> Iterator[str]:
    """Check that as many pods are Ready, by the condition that everyone sees.

    A kubelet that sets it to False because of our own readiness gates carries out what we asked for, however late.
    """
    workload = commit.workload
    if workload is None or workload.ended is not None or not _turns_unready(workload, commit):
        return
    if not commit.ours and not follows_our_gates(commit):
        return
    for count, least in _too_few(view, workload, commit, [pod for pod in workload.active() if pod.ready]):
        yield f"a pod of {workload.name} turns unready: {count} are Ready, {least} must be"


def _too_few(view: View, workload: Workload, commit: Commit, left: Sequence[Pod]) -> Iterator[tuple[int, int]]:
    """Yield how many wanted pods are left and how many must be, if that is too few by all recent terms.

    Unwanted pods may go, and are not counted.
    """
    unseen, found = workload.recent_losses(view.since), list[tuple[int, int]]()
    for terms in workload.recent_terms(view.since):
        count = sum(terms.wants(pod.metadata.name) for pod in left)
        least = terms.replicas - terms.max_unavailable
        if count + unseen >= least or not terms.wants(commit.version.name):
            return
        found.append((count, least))
    yield from found[-1:]


def _turns_unready(workload: Workload, commit: Commit) -> bool:
    before, pod = commit.before, commit.pod
    return before is not None and before.ready and workload.counts(before) and not (pod and pod.ready)


def changed_out_of_service(view: View, commit: Commit) -> Iterator[str]:
    """Check that images change only while InPlaceUpdateReady is False, until they run (common.md §9)."""
    before, pod = commit.before, commit.pod
    if not commit.ours or before is None or pod is None or commit.workload is None:
        return
    if images(before) != images(pod):
        if keys.IN_PLACE_READY in before.gates and _gate(before) != "False":
            yield f"changes images to {images(pod)} while the pod is in service"
        if all(terms.recreates for terms in commit.workload.recent_terms(view.since)):
            yield "changes a running pod, though pods are to be recreated"
    elif _gate(before) == "False" and _gate(pod) == "True" and _runs_others(pod):
        yield f"puts the pod back into service before it runs {images(pod)}"


def images(pod: Pod) -> dict[str, str]:
    """Return the wanted images by container, without those of sidecars (see `sidecars`)."""
    own = (one for one in pod.spec.containers if all(env.name != keys.INJECTED_ENV for env in one.env))
    return {container.name: container.image for container in own}


def _gate(pod: Pod) -> str:
    condition = pod.conditions.get(keys.IN_PLACE_READY)
    return condition.status if condition is not None else ""


def _runs_others(pod: Pod) -> bool:
    wanted = images(pod)
    return any(status.image != wanted.get(status.name, status.image) for status in pod.status.container_statuses)
