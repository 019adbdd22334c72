"""The two containers of a sidecar that is upgraded without a break: which one works, which one is next, which one is
due to idle (sidecarset.md §7.10).

One of them runs the sidecar, the other one an image that does nothing. An upgrade puts the new image on the idle one;
when it works, the former one idles. Never do both idle.
"""

from collections.abc import Mapping

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.jsontext import Reader
from flotilla_common.api.keys import SIDECAR_SET_WORKING_CONTAINER
from flotilla_common.api.kinds.sidecarset.types import Sidecar
from flotilla_sidecar.sidecarset.consistency import Consistency

_read = Reader(dict[str, str]).read


class Twins(msgspec.Struct, frozen=True):
    """The two containers of one sidecar in a pod."""

    sidecar: Sidecar
    working: str
    other: str
    images: Mapping[str, str]  # by container

    @property
    def idle_image(self) -> str:
        """The image that does nothing."""
        return self.sidecar.upgrade_strategy.hot_upgrade_empty_image

    @property
    def idles(self) -> bool:
        """The one that does not work has nothing to do: no upgrade is under way."""
        return self.images.get(self.other) == self.idle_image


def working_containers(annotations: Mapping[str, str]) -> dict[str, str]:
    """By sidecar, the container that works; empty where that cannot be read."""
    text = annotations.get(SIDECAR_SET_WORKING_CONTAINER)
    try:
        return _read(text) if text else {}
    except ValueError:
        return {}


def twins_of(pod: Pod, sidecar: Sidecar) -> Twins:
    """The two containers as the pod has them now. Which one works is what the pod remembers, unless just that one has
    the image that does nothing: then somebody else has written either of the two, and the images are what counts."""
    first, second = sidecar.names
    works = working_containers(pod.metadata.annotations).get(sidecar.name)
    working, other = (first, second) if works == first else (second, first)
    images = {container.name: container.image for container in pod.spec.containers if container.name in sidecar.names}
    twins = Twins(sidecar, working, other, images)
    if twins.images.get(working) == twins.idle_image and not twins.idles:
        return Twins(sidecar, other, working, images)
    return twins


def next_to_work(twins: Twins, consistency: Consistency) -> str:
    """The container that gets the next image: one that idles; else the one that is not healthy, if the other is; else
    the older one."""
    for name in twins.sidecar.names:
        if twins.images.get(name) == twins.idle_image:
            return name
    healthy = [name for name in twins.sidecar.names if is_healthy(name, consistency)]
    if len(healthy) == 1:
        return twins.other if healthy[0] == twins.working else twins.working
    return twins.other


def is_healthy(container: str, consistency: Consistency) -> bool:
    """It is ready, and runs the image that it is to run."""
    status = consistency.status(container)
    return status is not None and status.ready and consistency.holds((container,))
