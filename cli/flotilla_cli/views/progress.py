"""What of a workload is under way, as one sentence."""

from collections.abc import Sequence

from flotilla_common.api.documents import Json, member


def progress_of_pods(spec: Json, status: Json) -> str:
    """Return how many pods of how many are updated, ready and there; empty for a workload that rests."""
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
    """Return what is said and what holds the update; empty where nothing is said. `strategy` is of any version."""
    if not any(said):
        return ""
    partition = strategy.get("partition") or member(strategy, "rollingUpdate").get("partition")
    paused = strategy.get("paused") or member(strategy, "rollingUpdate").get("paused")
    held = [f"partition {partition}" if partition else "", "paused" if paused else ""]
    return ", ".join(filter(None, (*said, *held)))
