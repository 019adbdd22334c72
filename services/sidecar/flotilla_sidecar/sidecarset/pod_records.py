"""Records of SidecarSets on a pod: former images, and whether it can be updated in place (sidecarset.md §7.9, §7.11).

An annotation and the message of a condition hold a map by SidecarSet, which several of them share. So every change is
on exactly the version of the pod that was read, and keeps the entries of others; in the annotation byte for byte.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from flotilla_common.api.core import ContainerStatus, Pod
from flotilla_common.api.jsontext import Reader
from flotilla_common.api.keys import SIDECAR_SET_IN_PLACE_STATE, SIDECAR_SET_UPGRADABLE
from flotilla_common.api.meta import Condition, Model, rfc3339
from flotilla_common.workload.inplace.state import LastStatus
from flotilla_common.workload.podedit import PodEdit

ALL_UPGRADABLE, UPDATE_IMMUTABLE = "AllSidecarsetUpgradable", "UpdateImmutableField"


class SidecarState(Model, omit_defaults=False):
    """The changes of one SidecarSet to a pod."""

    revision: str = ""  # the SidecarSet's hash at its first change
    update_timestamp: str = ""
    last_container_statuses: dict[str, LastStatus] | None = None


_read_states = Reader(dict[str, msgspec.Raw]).read
_read_state = Reader(SidecarState).read
_read_values = Reader(dict[str, bool]).read


def last_statuses(annotations: Mapping[str, str], name: str) -> Mapping[str, LastStatus]:
    """Return, by container, what ran before that SidecarSet changed it; empty if unreadable."""
    # Without a record the container counts as consistent, or the pod would wait forever.
    text = annotations.get(SIDECAR_SET_IN_PLACE_STATE)
    try:
        raw = _read_states(text).get(name) if text else None
        return {} if raw is None else _read_state(raw).last_container_statuses or {}
    except ValueError:
        return {}


def with_last_images(
    annotations: Mapping[str, str], name: str, revision: str, changed: Mapping[str, LastStatus], now: datetime
) -> str:
    """Return the annotation with these containers changed. An unreadable one is replaced."""
    text = annotations.get(SIDECAR_SET_IN_PLACE_STATE)
    try:
        states = _read_states(text) if text else {}
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


def upgradability(pod: Pod) -> Mapping[str, bool]:
    """Return the condition's value for each SidecarSet; empty if it cannot be read."""
    condition = pod.conditions.get(SIDECAR_SET_UPGRADABLE)
    try:
        return {} if condition is None or not condition.message else _read_values(condition.message)
    except ValueError:
        return {}


def set_upgradability(edit: PodEdit, name: str, now: datetime, *, upgradable: bool) -> None:
    """Set whether that SidecarSet can update the pod, unless the pod shows it already."""
    stored = edit.pod.conditions.get(SIDECAR_SET_UPGRADABLE)
    values = {**upgradability(edit.pod), name: upgradable}
    all_upgradable = all(values.values())
    status, reason = ("True", ALL_UPGRADABLE) if all_upgradable else ("False", UPDATE_IMMUTABLE)
    message = msgspec.json.encode(values, order="sorted").decode()
    if stored is not None and (stored.status, stored.reason, stored.message) == (status, reason, message):
        return
    moved = stored is None or stored.status != status
    since = now if moved or stored is None else stored.last_transition_time
    edit.on_this_version()
    edit.set_condition(
        Condition(
            type=SIDECAR_SET_UPGRADABLE, status=status, reason=reason, message=message, last_transition_time=since
        )
    )
