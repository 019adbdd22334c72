"""Keeps what pages read from objects until the objects change: most of a page is the same a second later."""

from collections.abc import Callable
from typing import Generic, TypeVar

from flotilla_console.model.objects import Stored

T = TypeVar("T")

MOST_OBJECTS = 1 << 14
"""Results that are kept; all are dropped when there are more."""


class Memo(Generic[T]):
    """The results of a pure function of an object, for the last version of each object."""

    def __init__(self, compute: Callable[[Stored], T]) -> None:
        self._compute = compute
        self._kept: dict[str, tuple[Stored, T]] = {}

    def of(self, stored: Stored) -> T:
        """Return the result for the object."""
        kept = self._kept.get(stored.metadata.uid)
        if kept is not None and kept[0] is stored:
            return kept[1]
        if len(self._kept) >= MOST_OBJECTS:
            self._kept.clear()
        result = self._compute(stored)
        self._kept[stored.metadata.uid] = stored, result
        return result
