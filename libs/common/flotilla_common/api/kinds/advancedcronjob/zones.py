"""Time zones by their IANA names, and what the clocks of a zone show.

A clock that is put forward skips wall-clock times; one that is put back shows some of them twice.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

LOCAL = "Local"
"""What Go calls the zone of the process."""


def zone_named(name: str) -> tzinfo:
    """The zone. Raises ValueError when there is none of that name, whatever it looks like."""
    try:
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError) as error:  # not a path, nothing there, a directory
        raise ValueError(f"unknown time zone {name!r}") from error


def wall_clock(moment: datetime, zone: tzinfo) -> datetime:
    """What the clocks of the zone show at the moment: a naive time in whole seconds."""
    return moment.astimezone(zone).replace(tzinfo=None, microsecond=0)


def moments(wall: datetime, zone: tzinfo) -> list[datetime]:
    """When the clocks of the zone show this, in UTC and in order: never, once, or twice."""
    both = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return sorted({moment for moment in both if wall_clock(moment, zone) == wall.replace(fold=0)})


def shown_again(moment: datetime, zone: tzinfo) -> timedelta:
    """How far the clocks of the zone are put back before they show the same time a second time; zero if they do not."""
    *first, last = moments(wall_clock(moment, zone), zone)
    return last - first[0] if first and moment < last else timedelta(0)
