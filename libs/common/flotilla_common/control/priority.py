"""Orders the ready keys: rollouts in progress before new ones.

A recently handled key is in progress (its pods are starting, for example) and goes before idle keys, of which only a
few are started at a time: each takes a slot. Without this, 50 rollouts that start together all create their pods first,
and each pod waits seconds for its readiness conditions; the kubelets then write every status twice
(docs/performance.md). Keys that create pods in slow start take two slots and keep them from pass to pass. Idle keys
cannot starve: keys in progress need no slot, and a slot is free again after `SLOT_SECONDS` at the latest.
"""

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)

SLOW_START_SLOTS = 2
"""Slots of a key that creates pods in slow start: it needs several passes, while its first pods already wait."""

IN_PROGRESS_SECONDS = 5.0
"""A key that was handled less than this many seconds ago is in progress: the time that pods take to start."""

SLOT_SECONDS = 2.0
"""Seconds after which a slot is free again even if its pass has not ended.

Then an apiserver or a webhook is in trouble, and starting fewer keys would not help.
"""


class Held(NamedTuple):
    """The slots that a key holds, and since when."""

    since: float
    slots: int = 1


class PriorityOrder(Generic[K]):
    """The ready keys, of which `slots` idle keys are started at a time. Times are monotonic seconds."""

    def __init__(self, slots: int = 1) -> None:
        self._slots = slots
        self._idle: dict[K, None] = {}  # in order of arrival
        self._in_progress: dict[K, None] = {}  # in order of arrival
        self._held: dict[K, Held] = {}  # in order of time
        self._done: dict[K, float] = {}  # in order of time
        self._gone: set[K] = set()  # busy keys whose objects are gone

    def __len__(self) -> int:
        return len(self._idle) + len(self._in_progress)

    def __contains__(self, key: K) -> bool:
        return key in self._idle or key in self._in_progress

    def add(self, key: K, now: float) -> None:
        """Add a ready key. No effect if it is there already."""
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
        """Set whether a busy key creates pods in slow start, and so holds more slots for more passes."""
        if held := self._held.get(key):
            self._held[key] = Held(held.since, SLOW_START_SLOTS if slow else 1)

    def done(self, key: K, now: float) -> None:
        """End the pass over the key, and free its slots unless slow start keeps them for a further pass."""
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
        """Return when the next key may be taken, `now` or later; None when there is none."""
        if self._in_progress:
            return now
        return self._free_at(now) if self._idle else None

    def forget(self, key: K) -> None:
        """Note that a busy key's object is gone: a later object of that name is not in progress."""
        self._gone.add(key)

    def _free_at(self, now: float) -> float:
        """Return when a slot is free at the latest; a pass may end before."""
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
