"""The input of planning one WorkloadSpread, gathered beforehand and frozen."""

from collections.abc import Mapping, Sequence

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.workloadspread.types import VERSION_IGNORED, WORKLOAD_SPREAD, WorkloadSpread
from flotilla_common.control.objectref import ObjectRef


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The workload whose pods are spread."""

    replicas: int = 0
    latest: str | None = VERSION_IGNORED  # version of its newest pods; None: not known yet
    ordered: bool = True  # older pods leave the first subset first
    costed: bool = False  # its controller respects the deletion cost of pods
    rests: bool = False  # it should have no pods, though some may still exist


class WorkloadSpreadSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One WorkloadSpread and its surroundings at one moment."""

    spread: WorkloadSpread
    target: Target | None = None  # None: it does not exist, or is being deleted
    unreadable: str = ""  # why the target's number of pods cannot be read
    unfollowed: str = ""  # why the target cannot be watched
    pods: Sequence[Pod] = ()  # pods of the target, in any state
    versions: Mapping[str, str] = {}  # versions of these pods, by uid
    nodes: Mapping[str, Node] = {}  # nodes of these pods, by name

    @property
    def subject(self) -> ObjectRef:
        """The WorkloadSpread, as events and the bus name it."""
        return ObjectRef.of(WORKLOAD_SPREAD, self.spread.metadata)
