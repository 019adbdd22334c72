"""What is wrong with a pod today, in a few words: it will not become ready by itself."""

from datetime import datetime, timedelta

from flotilla_cli.imagined.kubelet import foreign_gates
from flotilla_common.api.documents import Json, mappings, member, text

STARTING = ("", "ContainerCreating", "PodInitializing")
"""Reasons of containers that wait for nothing but their turn."""

SOON = timedelta(seconds=60)
"""A container that has run for less may still become ready; a pod that should be gone for less may still go."""


def trouble_of(pod: Json, now: datetime) -> str:
    """Why the pod stays as it is; empty for one that is ready, or on its way."""
    metadata, status = pod["metadata"], member(pod, "status")
    if deleted := metadata.get("deletionTimestamp"):
        overdue = now - datetime.fromisoformat(deleted) > SOON
        return "it should be gone, and its node does not say that it is" if overdue else ""
    if not pod["spec"].get("nodeName"):
        return _unscheduled(status)
    found = (_of_container(one, now) for one in _statuses(status))
    return next((words for words in found if words), "") or _of_gates(pod)


def _of_gates(pod: Json) -> str:
    conditions = {one.get("type"): one.get("status") for one in mappings(member(pod, "status").get("conditions"))}
    closed = sorted(gate for gate in foreign_gates(pod) if conditions.get(gate) == "False")
    return f"readiness gate {closed[0]} is closed" if closed else ""


def _unscheduled(status: Json) -> str:
    for condition in mappings(status.get("conditions")):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return text(condition.get("message")) or text(condition.get("reason"))
    return ""


def _statuses(status: Json) -> list[Json]:
    return [*mappings(status.get("initContainerStatuses")), *mappings(status.get("containerStatuses"))]


def _of_container(status: Json, now: datetime) -> str:
    state, name = member(status, "state"), text(status.get("name"))
    waiting, runs = member(state, "waiting"), member(state, "running")
    if "waiting" in state:
        reason = text(waiting.get("reason"))
        return "" if reason in STARTING else f"{name}: {reason}"
    if "running" in state and status.get("ready") is False:
        since = runs.get("startedAt")
        fresh = since is not None and now - datetime.fromisoformat(since) < SOON
        return "" if fresh else f"{name} runs and is not ready"
    return ""
