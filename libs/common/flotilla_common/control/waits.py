"""Deadlines of one pass: when it is worth planning again even if nothing changes."""

from datetime import datetime


class Waits:
    """Remembers the earliest of the moments that have not come yet."""

    def __init__(self) -> None:
        self.next: datetime | None = None

    def until(self, moment: datetime | None) -> None:
        """Plan again at `moment`, or earlier if something else wants it."""
        if moment is not None:
            self.next = moment if self.next is None else min(self.next, moment)

    def not_before(self, moment: datetime) -> None:
        """Put off what is waited for to `moment`, for passes that would follow each other closely."""
        if self.next is not None:
            self.next = max(self.next, moment)

    def passed(self, moment: datetime, now: datetime) -> bool:
        """Whether the moment has come; if not, it is waited for."""
        if now < moment:
            self.until(moment)
        return now >= moment
