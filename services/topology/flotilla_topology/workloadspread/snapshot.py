"""The input of planning one WorkloadSpread, gathered beforehand and frozen, and the reading of its target workload.

See workloadspread.md §3 and §6.
"""

from collections.abc import Mapping, Sequence

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.keys import TEMPLATE_HASH_LABEL
from flotilla_common.api.kinds.workloadspread.targets import (
    CLONE_SETS,
    COSTED,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    GroupKind,
    replicas_of,
)
from flotilla_common.api.kinds.workloadspread.types import VERSION_IGNORED, WORKLOAD_SPREAD, WorkloadSpread
from flotilla_common.api.resources import Resource
from flotilla_common.api.workload import Workload
from flotilla_common.control.plan import ObjectRef


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The workload whose pods are spread."""

    replicas: int = 0
    latest: str | None = VERSION_IGNORED  # version of its newest pods; None: not known yet
    ordered: bool = True  # older pods leave the first subset first
    costed: bool = False  # its controller respects the deletion cost of pods
    rests: bool = False  # it should have no pods, though some may still exist


def target_of(
    resource: Resource, workload: Workload, paths: Sequence[str], latest: str | None, *, tracked: bool
) -> Target:
    """Read the workload as a Target. Raises ValueError if a number is missing.

    `latest`: the version of its newest pods.
    """
    kind = resource.group, resource.kind
    return Target(
        replicas=replicas_of({"spec": workload.document}, paths),
        latest=latest,
        ordered=tracked,
        costed=kind in COSTED,
        rests=kind != JOBS and workload.replicas == 0,
    )


def latest_version(kind: GroupKind, workload: Workload, newest: str | None) -> str | None:
    """Return the version of the workload's newest pods, for kinds with versions; None if it is not known yet.

    `newest`: the hash of a Deployment's newest ReplicaSet.
    """
    meta = workload.metadata
    if kind == REPLICA_SETS:
        return meta.labels.get(TEMPLATE_HASH_LABEL) or VERSION_IGNORED
    if workload.status.observed_generation < meta.generation:
        return None
    if kind == DEPLOYMENTS:
        return newest
    if kind == CLONE_SETS:
        return workload.status.update_revision.rpartition("-")[2] or None
    return VERSION_IGNORED


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
