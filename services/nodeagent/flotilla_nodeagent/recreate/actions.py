"""What to do for a request next: a pure function of its states (containerrecreaterequest.md §7.4).

One container is killed per pass, so that what was done is reported before the next thing is done.
"""

import msgspec

from flotilla_common.api.kinds.containerrecreaterequest.types import (
    FAILED,
    IGNORE,
    RECREATING,
    SUCCEEDED,
    ContainerRecreateRequest,
    RecreateState,
)


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """The walk over the states."""

    states: list[RecreateState]  # as they are after the walk
    kill: str = ""  # the container to stop now
    complete: bool = False  # the request is done


def act(request: ContainerRecreateRequest, states: list[RecreateState], present: frozenset[str]) -> Act:
    """Walk the states in order. `present`: containers that the runtime has."""
    strategy = request.spec.strategy
    walked = list(states)
    for index, state in enumerate(states):
        if state.phase == SUCCEEDED:
            continue
        if state.phase == FAILED:
            if strategy.failure_policy == IGNORE:
                continue
            return Act(states=walked, complete=True)
        if state.phase == RECREATING:
            walked[index] = msgspec.structs.replace(state, is_killed=True)
            if strategy.ordered_recreate:
                break
            continue
        return Act(states=walked, kill=state.name if state.name in present else "")
    return Act(states=walked, complete=all(state.phase in (SUCCEEDED, FAILED) for state in walked))


def with_outcome(states: list[RecreateState], name: str, error: str | None) -> list[RecreateState]:
    """The states after the container was stopped, or after that failed."""

    def after(state: RecreateState) -> RecreateState:
        if error is None:
            return RecreateState(name=name, phase=RECREATING, is_killed=True)
        message = f"kill container error: {error}"
        return RecreateState(name=name, phase=FAILED, message=message, is_killed=state.is_killed)

    return [after(state) if state.name == name else state for state in states]
