"""Checks whether the containers of a pod run the images of its spec (sidecarset.md §7.6).

A digest proves it. For tags, the pod has a record of what a container ran before it was changed: it runs the new image
as soon as it runs any other image than the recorded one.
"""

from collections.abc import Collection

from flotilla_common.api.core import Container, ContainerStatus, Pod
from flotilla_common.api.images import is_reported_as, same_digest
from flotilla_common.workload.inplace.state import LastStatus
from flotilla_sidecar.sidecarset.image_records import last_statuses


class Consistency:
    """The image checks for one version of a pod, from the view of one SidecarSet."""

    def __init__(self, pod: Pod, name: str) -> None:
        self._pod = pod
        self._statuses = {status.name: status for status in pod.status.container_statuses}
        self._complete = len(pod.spec.containers) == len(pod.status.container_statuses)
        self._last = last_statuses(pod.metadata.annotations, name)

    def status(self, container: str) -> ContainerStatus | None:
        """Return the kubelet's status of the container."""
        return self._statuses.get(container)

    def holds(self, names: Collection[str]) -> bool:
        """Report whether all containers of these names run the images of the spec."""
        if not self._complete:
            return False
        containers = [container for container in self._pod.spec.containers if container.name in names]
        for container in containers:
            if "@" not in container.image:
                return self._changed(containers)
            if not self._has_digest(container):
                return False
        return True

    def _has_digest(self, container: Container) -> bool:
        status = self._statuses.get(container.name)
        return status is not None and same_digest(container.image, status.image_id)

    def _changed(self, containers: Collection[Container]) -> bool:
        return all(self._runs_another(container, self._last.get(container.name)) for container in containers)

    def _runs_another(self, container: Container, last: LastStatus | None) -> bool:
        """Report whether the container runs another image than the `last` one. True if it was never changed.

        A report on an older spec proves nothing: if a container got a third image before the kubelet had reported the
        second one, the second would count as the change.
        """
        status = self._statuses.get(container.name)
        if last is None or status is None:
            return last is None
        if 0 < self._pod.status.observed_generation < self._pod.metadata.generation:
            return False
        if is_reported_as(container.image, status.image):
            return True
        return status.image_id != last.image_id and not (last.image and is_reported_as(last.image, status.image))
