"""The newest messages of a stream, within limits."""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")


class Newest(Generic[T]):
    """The newest of what several reads of a stream find, each once, even if a read begins again."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._heap: list[tuple[int, int, T]] = []  # sequence, size, item; the oldest first
        self._seen: set[int] = set()
        self._bytes = 0
        self._oldest = 0  # sequence up to which items were left out
        self.cut = 0
        """Older items that were left out."""

    def see(self, sequence: int) -> bool:
        """Report whether a message is seen for the first time, and may be among the newest."""
        if sequence in self._seen or sequence <= self._oldest:
            return False
        self._seen.add(sequence)
        return True

    def put(self, sequence: int, size: int, item: T) -> None:
        """Keep an item of a message with `size` bytes, and leave out older ones above the limits."""
        heappush(self._heap, (sequence, size, item))
        self._bytes += size
        while len(self._heap) > self._most or self._bytes > self._most_bytes:
            self._oldest, size, _ = heappop(self._heap)
            self._bytes -= size
            self.cut += 1

    def __iter__(self) -> Iterator[T]:
        """Yield them in the order of the stream."""
        return (item for _, _, item in sorted(self._heap, key=lambda one: one[0]))
