"""Tracks the two containers of a hot-upgraded sidecar: the working, the next and the idle one (sidecarset.md §7.10).

One of them runs the sidecar, the other one an empty image. An upgrade puts the new image on the idle container; once it
works, the former one idles. They never idle both.
"""

from collections.abc import Mapping

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.jsontext import Reader
from flotilla_common.api.keys import SIDECAR_SET_WORKING_CONTAINER
from flotilla_common.api.kinds.sidecarset.types import Sidecar
from flotilla_sidecar.sidecarset.consistency import Consistency

_read = Reader(dict[str, str]).read


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
