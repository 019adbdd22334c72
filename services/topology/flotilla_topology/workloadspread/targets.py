"""Reads the target workloads of a WorkloadSpread (workloadspread.md §3 and §6)."""

from collections.abc import Sequence

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
from flotilla_common.api.kinds.workloadspread.types import VERSION_IGNORED
from flotilla_common.api.resources import Resource
from flotilla_common.api.workload import Workload
from flotilla_topology.workloadspread.snapshot import Target


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
