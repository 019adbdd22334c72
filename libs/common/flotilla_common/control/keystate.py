"""The state that a controller keeps for each key between passes.

It holds the queue's timers, the turn of the status, the results of the last pass and its published reasons. All of it
may be lost at any time: a new leader begins without any.
"""

from collections.abc import Hashable, Mapping
from datetime import datetime
from typing import TypeVar

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_common.control.write_failures import WriteFailure

K = TypeVar("K", bound=Hashable)

Key = tuple[str, str]
"""Namespace and name."""

NEVER = float("-inf")


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

    # Status (`statusthrottle`)
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
