"""How far each container of a request is: a pure function of what was reported and what the runtime says (§7.3)."""

from collections.abc import Mapping

import msgspec

from flotilla_common.api.kinds.containerrecreaterequest.types import (
    FAILED,
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


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What the node knows of one container of the request."""

    container: Container | None = None  # the newest of its name
    running_seconds: float = 0.0  # how long it has surely been running
    stopped: bool = False  # this request had its predecessor, or itself, stopped, whatever was reported


def next_states(
    request: ContainerRecreateRequest, reported: list[RecreateState], seen: Mapping[str, Seen]
) -> list[RecreateState]:
    """The states as they should be reported now, in the order of the spec."""
    before = {state.name: state for state in reported}
    snapshots = {one.name: one for one in request.status.container_status_snapshot}
    return [
        _next(request, wanted, before.get(wanted.name), snapshots.get(wanted.name), seen.get(wanted.name, Seen()))
        for wanted in request.spec.containers
    ]


def _next(
    request: ContainerRecreateRequest,
    wanted: RecreateContainer,
    before: RecreateState | None,
    snapshot: ContainerSnapshot | None,
    seen: Seen,
) -> RecreateState:
    if before is not None and before.phase in (FAILED, SUCCEEDED):
        return before
    killed = seen.stopped or (before is not None and before.is_killed)
    found = seen.container
    if found is None:
        return RecreateState(name=wanted.name, phase=PENDING, message=NOT_FOUND, is_killed=killed)
    if found.state == State.EXITED:
        return RecreateState(name=wanted.name, phase=RECREATING, is_killed=killed)
    if request.spec.strategy.force_recreate and not killed:
        return RecreateState(name=wanted.name, phase=PENDING)
    if not _replaced(wanted, found):
        return RecreateState(name=wanted.name, phase=PENDING, is_killed=killed)
    done = _serving(snapshot, found) and seen.running_seconds > max(request.spec.strategy.min_started_seconds, 0)
    return RecreateState(name=wanted.name, phase=SUCCEEDED if done else RECREATING, is_killed=killed or done)


def _replaced(wanted: RecreateContainer, found: Container) -> bool:
    """It is another instance than the one that the request was made for. Start times say nothing (§13)."""
    context = wanted.status_context
    if context is None:
        return False
    return found.id != context.container_id.partition("://")[2] or found.restarts > context.restart_count


def _serving(snapshot: ContainerSnapshot | None, found: Container) -> bool:
    """The kubelet reports this very instance as ready."""
    return snapshot is not None and snapshot.ready and snapshot.container_id.partition("://")[2] == found.id
