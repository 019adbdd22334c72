"""The progress of a workload with replicas: its numbers, and one sentence about what is under way."""

from collections.abc import Sequence

from flotilla_common.api.documents import Json, member
from flotilla_common.api.kinds.cloneset.types import CloneSetStatus
from flotilla_common.api.kinds.statefulset.types import StatefulSetStatus
from flotilla_insight.workload import Numbers


def numbers_of_pods(desired: int, status: CloneSetStatus | StatefulSetStatus, expected_updated: int) -> Numbers:
    """Return the numbers of a workload, as its status counts them."""
    return Numbers(
        desired=desired,
        total=status.replicas,
        ready=status.ready_replicas,
        available=status.available_replicas,
        updated=status.updated_replicas,
        updated_ready=status.updated_ready_replicas,
        updated_available=status.updated_available_replicas,
        expected_updated=expected_updated,
    )


def progress_of_pods(spec: Json, status: Json) -> str:
    """Return how many pods of how many are updated, ready and created; empty for a workload at rest."""
    wanted, there, ready = spec.get("replicas", 1), status.get("replicas", 0), status.get("readyReplicas", 0)
    updated, served = status.get("updatedReplicas", 0), status.get("updatedReadyReplicas", 0)
    said = [
        f"{updated} of {wanted} pods updated" if updated < wanted else "",
        f"{served} of {updated} updated ones ready" if served < updated else "",
        f"{there} pods, {wanted} wanted" if there != wanted else "",
        f"{ready} of {there} ready" if ready < there and served == updated else "",
    ]
    return with_limits(said, member(spec, "updateStrategy"))


def with_limits(said: Sequence[str], strategy: Json) -> str:
    """Return the progress with what holds the update; empty without progress. `strategy`: of any version."""
    if not any(said):
        return ""
    partition = strategy.get("partition") or member(strategy, "rollingUpdate").get("partition")
    paused = strategy.get("paused") or member(strategy, "rollingUpdate").get("paused")
    held = [f"partition {partition}" if partition else "", "paused" if paused else ""]
    return ", ".join(filter(None, (*said, *held)))
