"""Whether the containers of a pod run the images that the pod asks for (sidecarset.md §7.6).

A digest says it for sure. For tags, what a container ran before it was changed is remembered on the pod: it runs the
new image as soon as it runs another one than that.
"""

from collections.abc import Collection

from flotilla_common.api.core import Container, ContainerStatus, Pod
from flotilla_common.api.images import is_reported_as, same_digest
from flotilla_common.workload.inplace.state import LastStatus
from flotilla_sidecar.sidecarset.inplacestate import last_statuses


class Consistency:
    """Answers for one version of a pod, as one SidecarSet sees it."""

    def __init__(self, pod: Pod, name: str) -> None:
        self._pod = pod
        self._statuses = {status.name: status for status in pod.status.container_statuses}
        self._complete = len(pod.spec.containers) == len(pod.status.container_statuses)
        self._last = last_statuses(pod.metadata.annotations, name)

    def status(self, container: str) -> ContainerStatus | None:
        """What the kubelet says of the container."""
        return self._statuses.get(container)

    def holds(self, names: Collection[str]) -> bool:
        """All containers of these names run what the pod asks for."""
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
        """Than the last one. True for a container that was never changed.

        A report on an older spec proves nothing: where a container got a third image before the kubelet had told of the
        second one, that comes as a changed image all the same.
        """
        status = self._statuses.get(container.name)
        if last is None or status is None:
            return last is None
        if 0 < self._pod.status.observed_generation < self._pod.metadata.generation:
            return False
        if is_reported_as(container.image, status.image):
            return True
        return status.image_id != last.image_id and not (last.image and is_reported_as(last.image, status.image))
