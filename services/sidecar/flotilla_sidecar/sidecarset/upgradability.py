"""Writes the pod condition that shows whether all SidecarSets can update the pod in place (sidecarset.md §7.11).

Its message is a map by SidecarSet, which several of them share: every change is on exactly the version of the pod that
was read.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.jsontext import Reader
from flotilla_common.api.keys import SIDECAR_SET_UPGRADABLE
from flotilla_common.api.meta import Condition
from flotilla_common.workload.podedit import PodEdit

ALL_UPGRADABLE, UPDATE_IMMUTABLE = "AllSidecarsetUpgradable", "UpdateImmutableField"

_read = Reader(dict[str, bool]).read


def upgradability(pod: Pod) -> Mapping[str, bool]:
    """Return the condition's value for each SidecarSet; empty if it cannot be read."""
    condition = pod.conditions.get(SIDECAR_SET_UPGRADABLE)
    try:
        return {} if condition is None or not condition.message else _read(condition.message)
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
