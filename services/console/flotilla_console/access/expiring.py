"""A bounded cache whose entries have an age."""

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Expiring(Generic[K, V]):
    """Values with the time at which they were put; the oldest one leaves when there are too many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, key: K, value: V, now: float) -> None:
        """Store the value, as put at this time."""
        self._entries.pop(key, None)
        self._entries[key] = (now, value)
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def get(self, key: K, now: float, seconds: float) -> V | None:
        """Return the value if it was put less than `seconds` ago."""
        entry = self._entries.get(key)
        return entry[1] if entry is not None and now - entry[0] < seconds else None

    def remove(self, key: K) -> None:
        """Remove the entry, if there is one."""
        self._entries.pop(key, None)
