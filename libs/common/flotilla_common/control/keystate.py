"""The state that a controller keeps for each key between passes, and the schedule of status writes.

The state holds the queue's timers, the turn of the status, the results of the last pass and its published reasons. All
of it may be lost at any time: a new leader begins without any.
"""

from collections.abc import Hashable, Mapping
from datetime import datetime
from typing import TypeVar

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_common.control.writes import WriteFailure

K = TypeVar("K", bound=Hashable)

Key = tuple[str, str]
"""Namespace and name."""

NEVER = float("-inf")

STATUS_INTERVAL = 0.5
"""Seconds between two writes of one object's counts."""

STATUS_SPACING = 0.25
"""Seconds between such writes of any two objects: they never cost more than a few percent of a core."""

STATUS_LAG = 10.0
"""Longest time in seconds that an object's counts wait for their turn."""


class Memory(msgspec.Struct, frozen=True):
    """Results of a pass for the next pass of the same object: hints only, which may be lost at any time."""

    failures: Mapping[str, str] = {}  # error texts by phase
    unconfirmed: tuple[tuple[Resource, str], ...] = ()  # creates of unknown outcome, which are retried before new ones
    refused: tuple[WriteFailure, ...] = ()  # failed writes, which are reported in reasons
    notes: Mapping[str, str] = {}  # notes of the plan


class KeyState(msgspec.Struct):
    """The state of one key. Times are monotonic seconds unless they are datetimes."""

    # Queue (`queue`)
    busy: bool = False  # a worker has the key
    changed: bool = False  # the key was added again since a worker took it
    due: float | None = None  # earliest wake-up of a delayed key
    hold_until: float = NEVER  # no pass begins before
    failures: int = 0  # steps of the backoff
    retry_at: float = NEVER  # end of the backoff

    # Status: see StatusThrottle
    status_owed: bool = False  # the last pass left the status to the next pass
    status_written: float = NEVER
    status_turn: float | None = None  # when counts may be written

    # Passes (`controller`)
    must_reread: bool = False  # a write has an unknown outcome: read before planning
    memory: Memory = Memory()
    wake_at: datetime | None = None  # the next pass that the last plan asks for
    published: tuple[object, ...] = ()  # content of the last why.v1 message


_NEW = KeyState()


class KeyStates(dict[K, KeyState]):
    """The states of all keys. `states[key]` adds a missing state, `states.get(key)` does not."""

    def __missing__(self, key: K) -> KeyState:
        state = self[key] = KeyState()
        return state

    def forget(self, key: K) -> None:
        """Reset the state of a busy key whose object is gone."""
        if state := self.get(key):
            self[key] = KeyState(busy=state.busy, changed=state.changed)

    def tidy(self, key: K) -> None:
        """Drop the state of a key if it equals a new one."""
        if self.get(key) == _NEW:
            del self[key]


class StatusThrottle:
    """The schedule of one controller's status writes: at once, with the next pass, or at a later turn.

    A status write is expensive: a custom resource that is served in two versions costs the apiserver as much as three
    writes of pods (docs/performance.md). So an urgent status of a pass that also writes dependents is left to the next
    pass, which follows at once and sees their outcome: one write reports both. Statuses that only change counts keep a
    minimum distance, per object and overall. The end of a rollout is urgent, because no pass follows it.
    """

    def __init__(self) -> None:
        self._next_turn = float("-inf")

    def due(self, state: KeyState, now: float, *, urgent: bool, wrote: bool) -> float:
        """Return when the status should be written; `now` or earlier means at once, infinity with the next pass.

        `wrote` is whether the pass wrote dependents. The next pass begins with a status that is owed to it.
        """
        if urgent:
            if not wrote:
                return now
            state.status_owed = True
            return float("inf")
        if state.status_turn is None:
            first = now if state.status_written == NEVER else state.status_written + STATUS_INTERVAL
            turn = state.status_turn = min(max(first, self._next_turn), now + STATUS_LAG)
            self._next_turn = max(turn, self._next_turn) + STATUS_SPACING
        return state.status_turn

    def written(self, state: KeyState, now: float) -> None:
        """Record that a status write of the object is being sent."""
        self.unneeded(state)
        state.status_written = now

    def missed(self, state: KeyState, now: float) -> None:
        """Keep the turn of an object after a conflict: its status must not wait long because others write it often."""
        state.status_turn = now

    def unneeded(self, state: KeyState) -> None:
        """Drop the object's turn, because the stored status is right."""
        state.status_owed, state.status_turn = False, None
