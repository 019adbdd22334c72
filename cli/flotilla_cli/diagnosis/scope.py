"""What of the cluster an object is about: its pods and nodes, and how long these may take."""

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, DaemonSet
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET, StatefulSet
from flotilla_common.api.resources import Resource
from flotilla_common.api.rollout import Lifecycle
from flotilla_common.workload.causes import Around, Group


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """All nodes and pods of an object that has a pod on each node."""

    nodes: Sequence[Node]
    pods: Sequence[Pod]
    why_not: Callable[[Node], str]  # why a node is to have none; empty: it is to have one
    once: bool = False  # a pod that has ended is not replaced


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What belongs to an object."""

    pods: Sequence[Pod] = ()  # those that something may be wrong with
    nodes: Sequence[str] = ()
    troubles: Sequence[Group] = ()  # of objects beside pods and nodes that no service of ours looks after
    basis: Around = Around()
    namespaced: bool = False  # pods of several namespaces
    served: Served | None = None  # None: it does not have a pod on each node, or who knows
    denied: frozenset[str] = frozenset()  # what may not be read


def basis_of(resource: Resource, raw: bytes, now: datetime) -> Around:
    """What the spec of a workload says of all of its pods."""
    if resource == CLONE_SET:
        spec = msgspec.json.decode(raw, type=CloneSet).spec
        return Around(now=now, lifecycle=spec.lifecycle or Lifecycle(), min_ready_seconds=spec.min_ready_seconds)
    if resource == DAEMON_SET:
        spec = msgspec.json.decode(raw, type=DaemonSet).spec
        return Around(now=now, lifecycle=spec.lifecycle or Lifecycle(), min_ready_seconds=spec.min_ready_seconds)
    if resource == STATEFUL_SET:
        spec = msgspec.json.decode(raw, type=StatefulSet).spec
        rolling = spec.update_strategy.rolling_update
        least = rolling.min_ready_seconds if rolling is not None else 0
        return Around(now=now, lifecycle=spec.lifecycle or Lifecycle(), min_ready_seconds=least)
    return Around(now=now)
