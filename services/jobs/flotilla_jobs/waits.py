"""Deadlines of one pass: those that have passed, and the next one to come."""

from datetime import datetime


class Waits:
    """Remembers the earliest of the moments that have not come yet."""

    def __init__(self) -> None:
        self.next: datetime | None = None

    def passed(self, moment: datetime, now: datetime) -> bool:
        """Whether the moment has come; if not, it is waited for."""
        if now >= moment:
            return True
        self.next = moment if self.next is None else min(self.next, moment)
        return False
