"""Checks whether the sidecars of a pod run the images of its spec, and which of two works (sidecarset.md §7.6, §7.10).

A digest proves that a container runs an image. For tags, the pod has a record of what a container ran before it was
changed: it runs the new image as soon as it runs any other image than the recorded one.

A hot-upgraded sidecar has two containers. One of them runs the sidecar, the other one an empty image. An upgrade puts
the new image on the idle container; once it works, the former one idles. They never idle both.
"""

from collections.abc import Collection, Mapping

import msgspec

from flotilla_common.api.core import Container, ContainerStatus, Pod
from flotilla_common.api.images import is_reported_as, same_digest
from flotilla_common.api.jsontext import Reader
from flotilla_common.api.keys import SIDECAR_SET_WORKING_CONTAINER
from flotilla_common.api.kinds.sidecarset.types import Sidecar
from flotilla_common.workload.inplace.state import LastStatus
from flotilla_sidecar.sidecarset.pod_records import last_statuses

_read = Reader(dict[str, str]).read


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


class ContainerPair(msgspec.Struct, frozen=True):
    """The two containers of one sidecar in a pod."""

    sidecar: Sidecar
    working: str
    other: str
    images: Mapping[str, str]  # by container

    @property
    def idle_image(self) -> str:
        """The empty image, which does nothing."""
        return self.sidecar.upgrade_strategy.hot_upgrade_empty_image

    @property
    def idles(self) -> bool:
        """Report whether the other container idles, so that no upgrade is in progress."""
        return self.images.get(self.other) == self.idle_image


def working_containers(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the working container by sidecar; empty if it cannot be read."""
    text = annotations.get(SIDECAR_SET_WORKING_CONTAINER)
    try:
        return _read(text) if text else {}
    except ValueError:
        return {}


def container_pair(pod: Pod, sidecar: Sidecar) -> ContainerPair:
    """Return the two containers as the pod has them now.

    The pod records which one works. But if just that one has the empty image, another writer has changed one of the
    two, and the images decide.
    """
    first, second = sidecar.names
    works = working_containers(pod.metadata.annotations).get(sidecar.name)
    working, other = (first, second) if works == first else (second, first)
    images = {container.name: container.image for container in pod.spec.containers if container.name in sidecar.names}
    pair = ContainerPair(sidecar, working, other, images)
    if pair.images.get(working) == pair.idle_image and not pair.idles:
        return ContainerPair(sidecar, other, working, images)
    return pair


def next_to_work(pair: ContainerPair, consistency: Consistency) -> str:
    """Return the container that gets the next image.

    This is an idle container; else the unhealthy one, if the other is healthy; else the older one.
    """
    for name in pair.sidecar.names:
        if pair.images.get(name) == pair.idle_image:
            return name
    healthy = [name for name in pair.sidecar.names if is_healthy(name, consistency)]
    if len(healthy) == 1:
        return pair.other if healthy[0] == pair.working else pair.working
    return pair.other


def is_healthy(container: str, consistency: Consistency) -> bool:
    """Report whether the container is ready and runs the image of the spec."""
    status = consistency.status(container)
    return status is not None and status.ready and consistency.holds((container,))
