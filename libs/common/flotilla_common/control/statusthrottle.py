"""Schedules status writes: at once, with the next pass, or at a later turn.

A status write is expensive: a custom resource that is served in two versions costs the apiserver as much as three
writes of pods (docs/performance.md). So an urgent status of a pass that also writes dependents is left to the next
pass, which follows at once and sees their outcome: one write reports both. Statuses that only change counts keep a
minimum distance, per object and overall. The end of a rollout is urgent, because no pass follows it.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

INTERVAL = 0.5
"""Seconds between two writes of one object's counts …"""

SPACING = 0.25
"""… and between such writes of any two objects, so that they never cost more than a few percent of a core …"""

LAG = 10.0
"""… but no object's counts wait longer than this many seconds for their turn."""


class StatusThrottle(Generic[K]):
    """The turns of one controller's objects. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._owed: set[K] = set()
        self._written: dict[K, float] = {}
        self._turns: dict[K, float] = {}
        self._next_turn = float("-inf")

    def owed(self, key: K) -> bool:
        """Report whether the last pass left its status to this pass, which then begins with it."""
        return key in self._owed

    def due(self, key: K, now: float, *, urgent: bool, wrote: bool) -> float:
        """Return when the status should be written; `now` or earlier means at once, infinity with the next pass.

        `wrote` is whether the pass wrote dependents.
        """
        if urgent:
            if not wrote:
                return now
            self._owed.add(key)
            return float("inf")
        turn = self._turns.get(key)
        if turn is None:
            turn = min(max(self._written.get(key, now - INTERVAL) + INTERVAL, self._next_turn), now + LAG)
            self._turns[key] = turn
            self._next_turn = max(turn, self._next_turn) + SPACING
        return turn

    def written(self, key: K, now: float) -> None:
        """Record that a status write of the object is being sent."""
        self._owed.discard(key)
        self._turns.pop(key, None)
        self._written[key] = now

    def missed(self, key: K, now: float) -> None:
        """Keep the turn of an object after a conflict: its status must not wait long because others write it often."""
        self._turns[key] = now

    def unneeded(self, key: K) -> None:
        """Drop the object's turn, because the stored status is right."""
        self._owed.discard(key)
        self._turns.pop(key, None)

    def forget(self, key: K) -> None:
        """Drop the state of an object that is gone."""
        self.unneeded(key)
        self._written.pop(key, None)
