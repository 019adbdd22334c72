"""Where a table's objects come from: the bus, or the apiserver directly. Both push through the same intake.

Since tables only move forward, both may run at once; the feed (mirror.feed) decides when the direct one is needed.
"""

from typing import Protocol


class Source(Protocol):
    """Feeds one intake."""

    @property
    def synced(self) -> bool:
        """Everything that existed when the source began has been taken in."""
        ...

    @property
    def heard(self) -> float:
        """When (monotonic) the source last had proof that it is up to date."""
        ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...
