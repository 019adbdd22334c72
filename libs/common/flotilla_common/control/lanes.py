"""Which of the ready keys is next: what is begun gets on before more is begun.

A key that was worked on a moment ago is in the middle of something, its pods coming up, say; it goes before keys that
were idle, and only a few idle ones are begun at a time. Without this, 50 rollouts that start together all create their
pods first, and each pod waits seconds for its readiness conditions; the kubelets then write every status twice
(docs/performance.md). So keys that create pods take more of the places than those that update them, which have all
they need, and keep them from pass to pass. Idle keys cannot starve: their few places are theirs alone, and a slow pass
gives its places up.
"""

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)

SLOW_PLACES = 2
"""What a key takes that creates pods in slow start: it lasts several passes, while its first pods wait already."""

RETURNING = 5.0
"""A key that was worked on so many seconds ago is in the middle of something: as long as pods take to come up."""

BEGINNING = 2.0
"""Seconds after which a pass that has begun something, or the wait for the next one, no longer keeps others from it: an
apiserver or a webhook is in trouble, and beginning less would help nobody."""


class Begun(NamedTuple):
    """Since when a key holds places, and how many."""

    since: float
    places: int = 1


class Lanes(Generic[K]):
    """The ready keys, each lane in order of arrival. `places`: idle keys that are begun at a time. Times are monotonic
    seconds."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._idle: dict[K, None] = {}
        self._returning: dict[K, None] = {}
        self._begun: dict[K, Begun] = {}  # in order of time
        self._done: dict[K, float] = {}  # in order of time
        self._gone: set[K] = set()  # of those that are worked on

    def __len__(self) -> int:
        return len(self._idle) + len(self._returning)

    def __contains__(self, key: K) -> bool:
        return key in self._idle or key in self._returning

    def add(self, key: K, now: float) -> None:
        """The key is ready. Nothing for one that is."""
        if key not in self:
            returning = now - self._done.get(key, float("-inf")) < RETURNING
            (self._returning if returning else self._idle)[key] = None

    def take(self, now: float) -> K | None:
        """The next key; None when there is none, or none that may be begun now."""
        if self._idle and self._free_at(now) <= now:
            key = _first(self._idle)
            self._begun[key] = Begun(now)
            return key
        return _first(self._returning) if self._returning else None

    def mark_slow(self, key: K, *, slow: bool) -> None:
        """Whether what was begun for the key takes more places than one, and more passes than this one."""
        if begun := self._begun.get(key):
            self._begun[key] = Begun(begun.since, SLOW_PLACES if slow else 1)

    def done(self, key: K, now: float) -> None:
        """The key was worked on. It gives its places up, or keeps them for a further pass."""
        self._done.pop(key, None)
        begun = self._begun.pop(key, None)
        if key in self._gone:
            self._gone.discard(key)
        else:
            self._done[key] = now
            if begun is not None and begun.places == SLOW_PLACES:
                self._begun[key] = Begun(now, SLOW_PLACES)
        while self._done and now - self._done[oldest := next(iter(self._done))] >= RETURNING:
            del self._done[oldest]
        while self._begun and now - self._begun[oldest := next(iter(self._begun))].since >= BEGINNING:
            del self._begun[oldest]

    def next_free(self, now: float) -> float | None:
        """When the next key may be taken, `now` or later; None when there is none."""
        if self._returning:
            return now
        return self._free_at(now) if self._idle else None

    def forget(self, key: K) -> None:
        """What was done for the key showed that the object is gone: a namesake begins anew."""
        self._gone.add(key)

    def _free_at(self, now: float) -> float:
        """When there is a place (at the latest: a pass may end before)."""
        taken = 0
        for begun in reversed(self._begun.values()):
            taken += begun.places
            if taken >= self._places:
                return max(begun.since + BEGINNING, now)
        return now


def _first(lane: dict[K, None]) -> K:
    key = next(iter(lane))
    del lane[key]
    return key
