"""The order in which ready keys are worked on: rollouts in progress before new ones.

A key that was worked on a moment ago is in progress (its pods are coming up, say) and goes before idle keys, of which
only a few are started at a time: each takes a slot. Without this, 50 rollouts that start together all create their pods
first, and each pod waits seconds for its readiness conditions; the kubelets then write every status twice
(docs/performance.md). Keys that create pods in slow start take two slots and keep them from pass to pass. Idle keys
cannot starve: keys in progress need no slot, and a slot is free again after `SLOT_SECONDS` at the latest.
"""

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)

SLOW_START_SLOTS = 2
"""Slots of a key that creates pods in slow start: it needs several passes, while its first pods wait already."""

IN_PROGRESS_SECONDS = 5.0
"""A key that was worked on less than this many seconds ago is in progress: as long as pods take to come up."""

SLOT_SECONDS = 2.0
"""After this many seconds a slot is free again even if its pass has not ended: an apiserver or a webhook is in trouble,
and starting less would help nobody."""


class Held(NamedTuple):
    """Since when a key holds slots, and how many."""

    since: float
    slots: int = 1


class PriorityOrder(Generic[K]):
    """The ready keys. `slots`: idle keys that are started at a time. Times are monotonic seconds."""

    def __init__(self, slots: int = 1) -> None:
        self._slots = slots
        self._idle: dict[K, None] = {}  # in order of arrival
        self._in_progress: dict[K, None] = {}  # in order of arrival
        self._held: dict[K, Held] = {}  # in order of time
        self._done: dict[K, float] = {}  # in order of time
        self._gone: set[K] = set()  # of those that are worked on

    def __len__(self) -> int:
        return len(self._idle) + len(self._in_progress)

    def __contains__(self, key: K) -> bool:
        return key in self._idle or key in self._in_progress

    def add(self, key: K, now: float) -> None:
        """The key is ready. No effect if it is already."""
        if key not in self:
            in_progress = now - self._done.get(key, float("-inf")) < IN_PROGRESS_SECONDS
            (self._in_progress if in_progress else self._idle)[key] = None

    def take(self, now: float) -> K | None:
        """Remove and return the next key; None when there is none, or none that may be started now."""
        if self._idle and self._free_at(now) <= now:
            key = _pop_first(self._idle)
            self._held[key] = Held(now)
            return key
        return _pop_first(self._in_progress) if self._in_progress else None

    def mark_slow_start(self, key: K, *, slow: bool) -> None:
        """Whether the key that is worked on creates pods in slow start, and so takes more slots for more passes."""
        if held := self._held.get(key):
            self._held[key] = Held(held.since, SLOW_START_SLOTS if slow else 1)

    def done(self, key: K, now: float) -> None:
        """The pass over the key ended. Its slots are free, unless slow start keeps them for a further pass."""
        self._done.pop(key, None)
        held = self._held.pop(key, None)
        if key in self._gone:
            self._gone.discard(key)
        else:
            self._done[key] = now
            if held is not None and held.slots == SLOW_START_SLOTS:
                self._held[key] = Held(now, SLOW_START_SLOTS)
        while self._done and now - self._done[oldest := next(iter(self._done))] >= IN_PROGRESS_SECONDS:
            del self._done[oldest]
        while self._held and now - self._held[oldest := next(iter(self._held))].since >= SLOT_SECONDS:
            del self._held[oldest]

    def next_free(self, now: float) -> float | None:
        """When the next key may be taken, `now` or later; None when there is none."""
        if self._in_progress:
            return now
        return self._free_at(now) if self._idle else None

    def forget(self, key: K) -> None:
        """The object of the key that is worked on is gone: a later object of that name is not in progress."""
        self._gone.add(key)

    def _free_at(self, now: float) -> float:
        """When a slot is free at the latest; a pass may end before."""
        taken = 0
        for held in reversed(self._held.values()):
            taken += held.slots
            if taken >= self._slots:
                return max(held.since + SLOT_SECONDS, now)
        return now


def _pop_first(keys: dict[K, None]) -> K:
    key = next(iter(keys))
    del keys[key]
    return key
