"""Decides which pods count as available for a budget (podunavailablebudget.md §6).

A pod is consistent when its containers run the images that its spec names. Between an update in place and the restart
of the container the kubelet still reports the pod as Ready, but it does not count.
"""

from collections.abc import Iterable, Mapping

from flotilla_common.api.core import Container, ContainerStatus, Pod
from flotilla_common.api.images import is_reported_as, same_digest
from flotilla_common.api.jsontext import Reader
from flotilla_common.api.keys import INJECTED_ENV, SIDECAR_SET_IN_PLACE_STATE
from flotilla_common.api.kinds.podunavailablebudget.types import UNAVAILABLE, BudgetStatus
from flotilla_common.api.kinds.sidecarset.pods import injected
from flotilla_common.api.meta import Model
from flotilla_common.gates import Gates
from flotilla_common.workload.budget.taking import is_recorded
from flotilla_common.workload.inplace.completion import completed
from flotilla_common.workload.inplace.state import LastStatus


class _SidecarState(Model):
    """The changes of one SidecarSet to a pod."""

    last_container_statuses: dict[str, LastStatus] | None = None


_read_states = Reader(dict[str, _SidecarState]).read


def is_unavailable_by_label(labels: Iterable[str]) -> bool:
    """Return whether one of the label keys makes a pod unavailable."""
    return any(key.startswith(UNAVAILABLE) for key in labels)


def is_ready(pod: Pod) -> bool:
    """Return whether the pod runs, is Ready, is not terminating, and has no label that makes it unavailable."""
    return (
        pod.ready
        and pod.status.phase == "Running"
        and pod.metadata.deletion_timestamp is None
        and not is_unavailable_by_label(pod.metadata.labels)
    )


def is_consistent(pod: Pod, gates: Gates) -> bool:
    """Return whether the containers run what the pod's spec asks for after its latest update in place.

    It is False while the annotations about that cannot be read.
    """
    statuses = {status.name: status for status in pod.status.container_statuses}
    with_digest = [container for container in pod.spec.containers if "@" in container.image]
    if not all(_runs_digest(container, statuses) for container in with_digest):
        return False
    if len(with_digest) == len(pod.spec.containers):
        return True
    return _sidecars_are_consistent(pod, statuses) and completed(pod, gates)


def is_available(pod: Pod, status: BudgetStatus, gates: Gates) -> bool:
    """Return whether the pod counts as available: active, ready, consistent, and not recorded in the budget.

    A recorded pod is about to become unavailable. `status` has the entries that are kept (§7.3).
    """
    return pod.active and is_ready(pod) and not is_recorded(status, pod) and is_consistent(pod, gates)


def _runs_digest(container: Container, statuses: Mapping[str, ContainerStatus]) -> bool:
    status = statuses.get(container.name)
    return status is not None and same_digest(container.image, status.image_id)


def _sidecars_are_consistent(pod: Pod, statuses: Mapping[str, ContainerStatus]) -> bool:
    """Return whether each injected container that a SidecarSet has updated runs another image than before.

    Running the requested image already is fine, too.
    """
    images = {one.name: one.image for one in pod.spec.containers if _is_injected(one)}
    names = injected(pod.metadata.annotations)
    text = pod.metadata.annotations.get(SIDECAR_SET_IN_PLACE_STATE)
    if not (images and names and text):
        return True
    try:
        states = _read_states(text)
    except ValueError:
        return False
    before = [states[name].last_container_statuses or {} for name in names if name in states]
    return not any(
        _is_unchanged(statuses.get(container), last, images[container])
        for changed in before
        for container, last in changed.items()
        if container in images
    )


def _is_injected(container: Container) -> bool:
    return any(env.name == INJECTED_ENV and env.value == "true" for env in container.env)


def _is_unchanged(status: ContainerStatus | None, last: LastStatus, image: str) -> bool:
    same = status is not None and bool(last.image_id) and status.image_id == last.image_id
    return same and status is not None and not is_reported_as(image, status.image)
