"""Computes the ordinals of a StatefulSet's pods (statefulset.md §4.2).

These are the first `replicas` integers from `start` on that are not reserved. They are kept as runs of consecutive
numbers, so that neither a range of two billion reserved ordinals nor ten thousand pods cost more than the runs between
them.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import msgspec

from flotilla_common.api.numbers import integer

MAX_ORDINAL = 2**31 - 1


class Run(msgspec.Struct, frozen=True):
    """A run of consecutive ordinals, `last` included. `rank`: the position of `first` among all ordinals."""

    first: int
    last: int
    rank: int


class Ordinals:
    """The desired ordinals of a set, in ascending order."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = tuple(runs)
        self._starts = [run.first for run in runs]

    @classmethod
    def of(cls, start: int, replicas: int, reserved: Sequence[tuple[int, int]]) -> "Ordinals":
        """Return `replicas` ordinals from `start` on, except the `reserved` (first, last) ranges, in any order."""
        runs: list[Run] = []
        rank, position = 0, start
        for first, last in [*sorted(reserved), (MAX_ORDINAL + 1, MAX_ORDINAL + 1)]:
            if rank == replicas:
                break
            free = min(first - position, replicas - rank)
            if free > 0:
                runs.append(Run(position, position + free - 1, rank))
                rank += free
            position = max(position, last + 1)
        return cls(runs)

    def __len__(self) -> int:
        return self._runs[-1].rank + self._runs[-1].last - self._runs[-1].first + 1 if self._runs else 0

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(range(run.first, run.last + 1) for run in self._runs)

    def __contains__(self, ordinal: int) -> bool:
        return self.rank(ordinal) >= 0

    def among(self, ordinals: Iterable[int]) -> list[int]:
        """Return the given ordinals that are in the set."""
        # Nearly always there is one run, which makes it quick.
        if len(self._runs) == 1:
            first, last = self._runs[0].first, self._runs[0].last
            return [ordinal for ordinal in ordinals if first <= ordinal <= last]
        return [ordinal for ordinal in ordinals if ordinal in self]

    def rank(self, ordinal: int) -> int:
        """Return the position of the ordinal, from 0; -1 if it is not in the set."""
        at = bisect_right(self._starts, ordinal) - 1
        if at < 0 or ordinal > self._runs[at].last:
            return -1
        return self._runs[at].rank + ordinal - self._runs[at].first


def ordinal_of(pod_name: str, set_name: str) -> int:
    """Return the ordinal in the name of a pod of the set; -1 for any other name."""
    prefix, dash, digits = pod_name.rpartition("-")
    ordinal = integer(digits) if dash and prefix == set_name else None
    return ordinal if ordinal is not None and ordinal <= MAX_ORDINAL and str(ordinal) == digits else -1
