"""When a status is written: at once, with the next pass, or when it is its turn.

A status write is dear: a custom resource that is served in two versions costs the apiserver as much as three writes of
pods (docs/performance.md). So an urgent status of a pass that also writes dependents is left to the next pass, which
follows at once and knows what came of them: one write says both. Statuses that only change counts keep a distance,
from those of the same object and from those of all others. The end of a rollout is urgent: nobody waits for it.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

INTERVAL = 0.5
"""Seconds between two writes of one object's counts …"""

SPACING = 0.25
"""… and between such writes of any two objects, so that they never cost more than a few percent of a core …"""

LAG = 10.0
"""… but nobody's counts wait longer than so many seconds for their turn."""


class StatusThrottle(Generic[K]):
    """The turns of one controller's objects. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._owed: set[K] = set()
        self._written: dict[K, float] = {}
        self._turns: dict[K, float] = {}
        self._next_turn = float("-inf")

    def owed(self, key: K) -> bool:
        """Whether the last pass left its status to this one, which then begins with it."""
        return key in self._owed

    def due(self, key: K, now: float, *, urgent: bool, wrote: bool) -> float:
        """When the status is to be written, after a pass that `wrote` dependents or not: not later than `now` means
        now. Infinity: with the next pass."""
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
        """A status write of the object is on its way."""
        self._owed.discard(key)
        self._turns.pop(key, None)
        self._written[key] = now

    def missed(self, key: K, now: float) -> None:
        """The write met a conflict: the object keeps its turn. If it waited for another one, whoever else writes the
        status often would keep it from being right for long."""
        self._turns[key] = now

    def unneeded(self, key: K) -> None:
        """The stored status is right as it is."""
        self._owed.discard(key)
        self._turns.pop(key, None)

    def forget(self, key: K) -> None:
        """The object is gone."""
        self.unneeded(key)
        self._written.pop(key, None)
