"""Computes the state of each container of a request, and the next step (containerrecreaterequest.md §7.3, §7.4).

The functions are pure: their input is the last report and the runtime's state. One container is killed per pass, so
that each step is reported before the next one.
"""

from collections.abc import Mapping

import msgspec

from flotilla_common.api.kinds.containerrecreaterequest.types import (
    FAILED,
    IGNORE,
    PENDING,
    RECREATING,
    SUCCEEDED,
    ContainerRecreateRequest,
    ContainerSnapshot,
    RecreateContainer,
    RecreateState,
)
from flotilla_nodeagent.cri.types import Container, State

NOT_FOUND = "not found container on Node"


class ContainerObservation(msgspec.Struct, frozen=True, kw_only=True):
    """The node's view of one container of the request."""

    container: Container | None = None  # the newest of its name
    running_seconds: float = 0.0  # the time for which it is certain to have been running
    stopped: bool = False  # did this request have it or its predecessor stopped, reported or not?


def next_states(
    request: ContainerRecreateRequest, reported: list[RecreateState], seen: Mapping[str, ContainerObservation]
) -> list[RecreateState]:
    """Return the states to be reported now, in the order of the spec."""
    before = {state.name: state for state in reported}
    snapshots = {each.name: each for each in request.status.container_status_snapshot}
    return [
        _next(
            request,
            wanted,
            before.get(wanted.name),
            snapshots.get(wanted.name),
            seen.get(wanted.name, ContainerObservation()),
        )
        for wanted in request.spec.containers
    ]


def _next(
    request: ContainerRecreateRequest,
    wanted: RecreateContainer,
    before: RecreateState | None,
    snapshot: ContainerSnapshot | None,
    seen: ContainerObservation,
) -> RecreateState:
    if before is not None and before.phase in (FAILED, SUCCEEDED):
        return before
    killed = seen.stopped or (before is not None and before.is_killed)
    container = seen.container
    if container is None:
        return RecreateState(name=wanted.name, phase=PENDING, message=NOT_FOUND, is_killed=killed)
    if container.state == State.EXITED:
        return RecreateState(name=wanted.name, phase=RECREATING, is_killed=killed)
    if request.spec.strategy.force_recreate and not killed:
        return RecreateState(name=wanted.name, phase=PENDING)
    if not _replaced(wanted, container):
        return RecreateState(name=wanted.name, phase=PENDING, is_killed=killed)
    done = _serving(snapshot, container) and seen.running_seconds > max(request.spec.strategy.min_started_seconds, 0)
    return RecreateState(name=wanted.name, phase=SUCCEEDED if done else RECREATING, is_killed=killed or done)


def _replaced(wanted: RecreateContainer, container: Container) -> bool:
    """Report whether it is another instance than the one that the request was made for."""
    # Start times prove nothing (§13).
    context = wanted.status_context
    if context is None:
        return False
    return container.id != context.container_id.partition("://")[2] or container.restarts > context.restart_count


def _serving(snapshot: ContainerSnapshot | None, container: Container) -> bool:
    """Report whether the kubelet reports this very instance as ready."""
    return snapshot is not None and snapshot.ready and snapshot.container_id.partition("://")[2] == container.id


class NextStep(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the walk over the states."""

    states: list[RecreateState]  # after the walk
    kill: str = ""  # the container to stop now
    complete: bool = False  # the request is done


def next_step(request: ContainerRecreateRequest, states: list[RecreateState], present: frozenset[str]) -> NextStep:
    """Walk the states in order; `present` are the containers that the runtime has."""
    strategy = request.spec.strategy
    walked = list(states)
    for index, state in enumerate(states):
        if state.phase == SUCCEEDED:
            continue
        if state.phase == FAILED:
            if strategy.failure_policy == IGNORE:
                continue
            return NextStep(states=walked, complete=True)
        if state.phase == RECREATING:
            walked[index] = msgspec.structs.replace(state, is_killed=True)
            if strategy.ordered_recreate:
                break
            continue
        return NextStep(states=walked, kill=state.name if state.name in present else "")
    return NextStep(states=walked, complete=all(state.phase in (SUCCEEDED, FAILED) for state in walked))


def with_outcome(states: list[RecreateState], name: str, error: str | None) -> list[RecreateState]:
    """Return the states after the container was stopped, or after that failed."""

    def after(state: RecreateState) -> RecreateState:
        if error is None:
            return RecreateState(name=name, phase=RECREATING, is_killed=True)
        message = f"kill container error: {error}"
        return RecreateState(name=name, phase=FAILED, message=message, is_killed=state.is_killed)

    return [after(state) if state.name == name else state for state in states]
