"""Records on a pod the images that its sidecars had before they were changed (sidecarset.md §7.9).

One annotation holds the states of all SidecarSets, by name. Those of others are kept byte for byte.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from flotilla_common.api.core import ContainerStatus
from flotilla_common.api.jsontext import Reader
from flotilla_common.api.keys import SIDECAR_SET_IN_PLACE_STATE
from flotilla_common.api.meta import Model, rfc3339
from flotilla_common.workload.inplace.state import LastStatus


class SidecarState(Model, omit_defaults=False):
    """The changes of one SidecarSet to a pod."""

    revision: str = ""  # the SidecarSet's hash at its first change
    update_timestamp: str = ""
    last_container_statuses: dict[str, LastStatus] | None = None


_read = Reader(dict[str, msgspec.Raw]).read
_read_state = Reader(SidecarState).read


def last_statuses(annotations: Mapping[str, str], name: str) -> Mapping[str, LastStatus]:
    """Return, by container, what ran before that SidecarSet changed it; empty if unreadable."""
    # Without a record the container counts as consistent, or the pod would wait forever.
    text = annotations.get(SIDECAR_SET_IN_PLACE_STATE)
    try:
        raw = _read(text).get(name) if text else None
        return {} if raw is None else _read_state(raw).last_container_statuses or {}
    except ValueError:
        return {}


def with_last_images(
    annotations: Mapping[str, str], name: str, revision: str, changed: Mapping[str, LastStatus], now: datetime
) -> str:
    """Return the annotation with these containers changed. An unreadable one is replaced."""
    text = annotations.get(SIDECAR_SET_IN_PLACE_STATE)
    try:
        states = _read(text) if text else {}
        mine = _read_state(states[name]) if name in states else None
    except ValueError:
        states, mine = {}, None
    mine = mine or SidecarState(revision=revision, update_timestamp=rfc3339(now))
    last = {**(mine.last_container_statuses or {}), **changed}
    states[name] = msgspec.Raw(msgspec.json.encode(msgspec.structs.replace(mine, last_container_statuses=last)))
    return msgspec.json.encode(states, order="sorted").decode()


def last_status(status: ContainerStatus | None, image: str) -> LastStatus:
    """Return what ran in a container that had this image.

    If the kubelet has not reported an image id yet, it may be about to start the image, which is recorded instead.
    """
    image_id = "" if status is None else status.image_id
    return LastStatus(image_id=image_id) if image_id else LastStatus(image=image)
