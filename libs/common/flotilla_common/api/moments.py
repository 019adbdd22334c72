"""Aware times, and arithmetic with user-supplied durations that does not fail at the ends of the calendar."""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated

import msgspec

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with a zone. Decoding refuses times without one, as they cannot be compared with others."""

EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def later(moment: datetime, by: float | timedelta) -> datetime:
    """Return the moment that many seconds later, or earlier if negative, clamped to the calendar."""
    seconds = by.total_seconds() if isinstance(by, timedelta) else by
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return LATEST if seconds > 0 else EARLIEST


def in_zone(moment: datetime, zone: tzinfo = UTC) -> datetime:
    """Return the moment in the zone, clamped to the calendar."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return LATEST if moment.year > 1 else EARLIEST
