"""A clock whose time passes only when somebody sets it."""

from datetime import datetime


class ManualClock:
    """Show `time`. Nobody waits by this clock."""

    def __init__(self, time: datetime) -> None:
        self.time = time

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    async def sleep(self, seconds: float) -> None:
        """Return at once."""
