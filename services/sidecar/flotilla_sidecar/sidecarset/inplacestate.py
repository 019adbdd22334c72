"""The images that a pod's sidecars had before they were changed, as the pod remembers them (sidecarset.md §7.9).

One annotation holds the states of all SidecarSets, by name. Those of others are kept as they are, byte for byte.
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
    """What one SidecarSet has changed on a pod."""

    revision: str = ""  # its hash when it changed the pod first
    update_timestamp: str = ""
    last_container_statuses: dict[str, LastStatus] | None = None


_read = Reader(dict[str, msgspec.Raw]).read
_read_state = Reader(SidecarState).read


def last_statuses(annotations: Mapping[str, str], name: str) -> Mapping[str, LastStatus]:
    """By container, what ran before that SidecarSet changed it. Nothing where the annotation cannot be read: nobody can
    tell any more, and the pod would wait for ever."""
    text = annotations.get(SIDECAR_SET_IN_PLACE_STATE)
    try:
        raw = _read(text).get(name) if text else None
        return {} if raw is None else _read_state(raw).last_container_statuses or {}
    except ValueError:
        return {}


def remembered(
    annotations: Mapping[str, str], name: str, revision: str, changed: Mapping[str, LastStatus], now: datetime
) -> str:
    """The annotation with these containers changed. What cannot be read is begun anew: nobody can use it."""
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
    """What ran in a container that had this image. Where the kubelet has not said so yet, it may be about to start it,
    and the image is remembered instead."""
    image_id = "" if status is None else status.image_id
    return LastStatus(image_id=image_id) if image_id else LastStatus(image=image)
