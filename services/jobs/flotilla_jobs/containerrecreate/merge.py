"""Merges what the agent and the kubelet report into the status (containerrecreaterequest.md §5, §6.3, §7.5).

The agent is trusted with what it sees, not with history: a completed request stays so, a container that succeeded or
failed stays so, and a killed one stays killed. Merging is idempotent. Whether new containers are ready comes from the
pod's own status, which the kubelet writes.
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from flotilla_common.api.core import ContainerStatus, Pod
from flotilla_common.api.kinds.containerrecreaterequest.types import (
    COMPLETED,
    FAILED,
    PENDING,
    RECREATING,
    SUCCEEDED,
    ContainerRecreateRequest,
    ContainerRecreateRequestSpec,
    ContainerRecreateRequestStatus,
    ContainerSnapshot,
    RecreateContainer,
    RecreateState,
)
from flotilla_common.node.reports import RecreateReport

MESSAGE_LIMIT = 1024
"""Length limit of a stored message, as in Kubernetes' events: runtimes may quote at length."""

ENDED = "the request ended before the new container was ready"
"""Message of a container that was being recreated when another one's failure ended the request."""

_PHASES = ("", PENDING, RECREATING, COMPLETED)
_STATE_PHASES = (PENDING, RECREATING, SUCCEEDED, FAILED)
_FINAL = (SUCCEEDED, FAILED)


def problem(report: RecreateReport, spec: ContainerRecreateRequestSpec) -> str:
    """Return why the report cannot be about a request with this spec, or "" if it can."""
    if report.phase not in _PHASES:
        return f"unknown phase {report.phase!r}"
    named = [state.name for state in report.states or ()]
    if len(named) != len(set(named)):
        return "a container is reported twice"
    known = {container.name for container in spec.containers}
    for state in report.states or ():
        if state.name not in known:
            return f"container {state.name!r} is not in the request"
        if state.phase not in _STATE_PHASES:
            return f"unknown phase {state.phase!r} of container {state.name}"
    return ""


def absorbed(request: ContainerRecreateRequest, report: RecreateReport, now: datetime) -> bool:
    """Report whether the status has everything that the report can still add."""
    return merged(request, report, now) == request.status


def merged(
    request: ContainerRecreateRequest, report: RecreateReport | None, now: datetime
) -> ContainerRecreateRequestStatus:
    """Return the status after the report."""
    status = request.status
    if report is None:
        return status
    status = msgspec.structs.replace(status, container_recreate_states=_states(request, report))
    if status.phase == COMPLETED or not report.phase or _PHASES.index(report.phase) <= _rank(status.phase):
        return status
    if report.phase == COMPLETED:
        return completed(request, status, report.message[:MESSAGE_LIMIT], now)
    return msgspec.structs.replace(status, phase=report.phase)


def completed(
    request: ContainerRecreateRequest, status: ContainerRecreateRequestStatus, message: str, now: datetime
) -> ContainerRecreateRequestStatus:
    """Return the status of a request that ends now. Nothing waits any more, so no container stays Recreating."""
    # Not before the creation, which another clock may have set.
    end = max(now.replace(microsecond=0), request.metadata.creation_timestamp or now)
    states = [
        _failed(state, message or ENDED) if state.phase == RECREATING else state
        for state in status.container_recreate_states
    ]
    return msgspec.structs.replace(
        status, phase=COMPLETED, message=message, completion_time=end, container_recreate_states=states
    )


def cut_short(
    request: ContainerRecreateRequest, status: ContainerRecreateRequestStatus, message: str, now: datetime
) -> ContainerRecreateRequestStatus:
    """Return the status of a request that ends now although the agent is not done.

    Each container that has not succeeded is Failed, even one without a report.
    """
    stored = {state.name: state for state in status.container_recreate_states}
    known = [stored.get(container.name, RecreateState(name=container.name)) for container in request.spec.containers]
    states = [state if state.phase in _FINAL else _failed(state, message) for state in known]
    return completed(request, msgspec.structs.replace(status, container_recreate_states=states), message, now)


def _failed(state: RecreateState, message: str) -> RecreateState:
    return msgspec.structs.replace(state, phase=FAILED, message=message[:MESSAGE_LIMIT])


def _states(request: ContainerRecreateRequest, report: RecreateReport) -> list[RecreateState]:
    stored = {state.name: state for state in request.status.container_recreate_states}
    reported = {state.name: state for state in report.states or ()}
    finished = request.completed
    states: list[RecreateState] = []
    for container in request.spec.containers:
        state = _state(stored.get(container.name), reported.get(container.name), finished=finished)
        if state is not None:
            states.append(state)
    return states


def _state(old: RecreateState | None, new: RecreateState | None, *, finished: bool) -> RecreateState | None:
    if new is None:
        return old
    killed = new.is_killed or (old is not None and old.is_killed)
    if old is not None and old.phase in _FINAL:
        return msgspec.structs.replace(old, is_killed=killed)  # the agent's stop may have outlived the request
    if finished and new.phase in (RECREATING, SUCCEEDED):
        new = _failed(RecreateState(name=new.name), ENDED)
        killed = True
    return msgspec.structs.replace(new, is_killed=killed, message=new.message[:MESSAGE_LIMIT])


def _rank(phase: str) -> int:
    """Return the order of the phases. An unknown one, from another writer, gives way to any report."""
    return _PHASES.index(phase) if phase in _PHASES else -1


def observed(request: ContainerRecreateRequest, pod: Pod) -> list[ContainerSnapshot]:
    """Return the current snapshot of new containers, or the last one if there are none at the moment.

    A restarted container appears under its new ID, never under the old one. A start time proves nothing: a container
    may be younger than the request and still be the one that was meant (§13).
    """
    created = request.metadata.creation_timestamp
    statuses = {status.name: status for status in pod.status.container_statuses}
    seen = list(_restarted(request.spec.containers, statuses, created))
    return seen or request.status.container_status_snapshot


def _restarted(
    containers: Iterable[RecreateContainer], statuses: dict[str, ContainerStatus], created: datetime | None
) -> Iterable[ContainerSnapshot]:
    for container in containers:
        status = statuses.get(container.name)
        if status is not None and _is_another(status, container, created):
            yield ContainerSnapshot(
                name=status.name,
                ready=status.ready,
                restart_count=status.restart_count,
                container_id=status.container_id,
            )


def _is_another(status: ContainerStatus, container: RecreateContainer, created: datetime | None) -> bool:
    """Report whether it runs, and is not the container that was running when the request was created."""
    running, meant = status.state.running, container.status_context
    if running is None or not status.container_id:
        return False
    if meant is not None and meant.container_id:
        return status.container_id != meant.container_id or status.restart_count > meant.restart_count
    return created is not None and running.started_at is not None and running.started_at >= created
