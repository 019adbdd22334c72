"""What the pod's own status says of the new containers (containerrecreaterequest.md §6.3).

The agent sees containers, but only the kubelet knows whether they are ready. A container stands here once it has been
restarted, under its new ID and never under the old one: a start time proves nothing, since a container may be younger
than the request and still be the one that was meant (§13).
"""

from collections.abc import Iterable
from datetime import datetime

from flotilla_common.api.core import ContainerStatus, Pod
from flotilla_common.api.kinds.containerrecreaterequest.types import (
    ContainerRecreateRequest,
    ContainerSnapshot,
    RecreateContainer,
)


def observed(request: ContainerRecreateRequest, pod: Pod) -> list[ContainerSnapshot]:
    """The snapshot as it must be now; while everything is between old and new, what was last seen."""
    created = request.metadata.creation_timestamp
    statuses = {status.name: status for status in pod.status.container_statuses}
    seen = list(_restarted(request.spec.containers, statuses, created))
    return seen or request.status.container_status_snapshot


def _restarted(
    containers: Iterable[RecreateContainer], statuses: dict[str, ContainerStatus], created: datetime | None
) -> Iterable[ContainerSnapshot]:
    for container in containers:
        status = statuses.get(container.name)
        if status is not None and _is_another(status, container, created):
            yield ContainerSnapshot(
                name=status.name,
                ready=status.ready,
                restart_count=status.restart_count,
                container_id=status.container_id,
            )


def _is_another(status: ContainerStatus, container: RecreateContainer, created: datetime | None) -> bool:
    """It runs, and is not the container that was running when the request was made."""
    running, meant = status.state.running, container.status_context
    if running is None or not status.container_id:
        return False
    if meant is not None and meant.container_id:
        return status.container_id != meant.container_id or status.restart_count > meant.restart_count
    return created is not None and running.started_at is not None and running.started_at >= created
