"""Moments, and arithmetic with numbers that users wrote: the calendar ends, and the arithmetic does not fail there."""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated

import msgspec

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with a zone: one without cannot be compared with any other, and is not read."""

EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def later(moment: datetime, by: float | timedelta) -> datetime:
    """Return the moment so many seconds later, or earlier for a negative number; the end of the calendar if that is
    beyond it."""
    seconds = by.total_seconds() if isinstance(by, timedelta) else by
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return LATEST if seconds > 0 else EARLIEST


def in_zone(moment: datetime, zone: tzinfo = UTC) -> datetime:
    """Return the moment as the clocks of the zone show it; the end of the calendar if that is beyond it."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return LATEST if moment.year > 1 else EARLIEST
