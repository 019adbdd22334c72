"""Computes the times at which an AdvancedCronJob's runs are due (advancedcronjob.md §4.4).

The library cronsim finds the next wall-clock time that matches the five fields. Wall-clock time is not continuous: on
the day clocks are set forward some times do not occur, and no run is due then; on the day they are set back some occur
twice, and a run is due at both. Durations are in Go's format: 1h30m, 90s, 1.5h.

Dialects of cron differ: in the meaning of a star with a step in day fields, in 7 as Sunday, in signs besides numbers.
So the fields are checked here and rewritten into a form that all dialects read alike: a star, or a list of numbers.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from itertools import islice, takewhile
from typing import Final
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError

_NANOSECONDS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # micro sign
    "μs": 1_000,  # Greek letter mu
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_TERM = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_DURATION = re.compile(rf"[-+]?({_TERM.pattern})+|[-+]?0")
_MOST_CHARACTERS = 100
_MOST = 2**63 - 1  # nanoseconds that Go can count: 292 years

SEARCHED_YEARS = 5
"""A schedule without a run within these years has none at all."""

_EVERY = "@every "
_ZONE_PREFIXES = ("TZ=", "CRON_TZ=")

LOCAL = "Local"
"""Go's name for the zone of the process."""


def zone_named(name: str) -> tzinfo:
    """Return the zone. Raises ValueError for any name without one."""
    try:
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError) as error:  # not a path, nothing there, a directory
        raise ValueError(f"unknown time zone {name!r}") from error


def wall_clock(moment: datetime, zone: tzinfo) -> datetime:
    """Return the wall-clock time in the zone: a naive time in whole seconds."""
    return moment.astimezone(zone).replace(tzinfo=None, microsecond=0)


def moments(wall: datetime, zone: tzinfo) -> list[datetime]:
    """Return the moments with this wall-clock time, in UTC and in order: none, one, or two."""
    both = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return sorted({moment for moment in both if wall_clock(moment, zone) == wall.replace(fold=0)})


def shown_again(moment: datetime, zone: tzinfo) -> timedelta:
    """Return how far clocks are set back before they show this time again; zero if they are not."""
    *first, last = moments(wall_clock(moment, zone), zone)
    return last - first[0] if first and moment < last else timedelta(0)


class Schedule(msgspec.Struct, frozen=True):
    """A parsed schedule."""

    zone: tzinfo
    """The zone of the wall-clock times."""
    rule: str | timedelta
    """Five fields of stars and numbers, or the interval between runs."""

    @classmethod
    def parse(cls, text: str, time_zone: str | None = None, local: tzinfo = UTC) -> "Schedule":
        """Parse `spec.schedule` and `spec.timeZone`. Raises ValueError with the reason, and no other error.

        `local`: the zone of this process, for schedules without a zone, and for an unknown `time_zone`.
        """
        zone, text = _zone(text, time_zone, local)
        if text.startswith(_EVERY):
            return cls(zone, max(whole_seconds(text.removeprefix(_EVERY)), timedelta(seconds=1)))
        return cls(zone, rewritten(text))

    def next(self, after: datetime) -> datetime | None:
        """Return the first run after the moment, in UTC and in whole seconds; None if none comes in five years."""
        return next(self.runs(after), None)

    def runs(self, since: datetime, after: datetime | None = None) -> Iterator[datetime]:
        """Yield all runs later than `after`, in order.

        `since`: the last due run, or the start of counting. Only `@every` counts from there; without `after` the runs
        also begin there.
        """
        after = since if after is None else max(since, after)
        with suppress(OverflowError):  # the calendar ends with the year 9999
            if isinstance(self.rule, timedelta):
                yield from _every(self.rule, since, after)
            else:
                yield from self._by_clock(self.rule, after)

    def missed(self, since: datetime, now: datetime, most: int, after: datetime | None = None) -> list[datetime]:
        """Return at most `most + 1` runs (so overflow is detectable) later than `since` and `after`, up to `now`."""
        due = takewhile(lambda run: run <= now, self.runs(since, after))
        return list(islice(due, most + 1))

    def _by_clock(self, fields: str, after: datetime) -> Iterator[datetime]:
        """Yield runs by wall clock. Times that clocks show a second time are held back until their turn."""
        again: deque[datetime] = deque()
        for wall in _fitting(fields, wall_clock(after, self.zone) - shown_again(after, self.zone)):
            first, *second = moments(wall, self.zone) or (None,)
            if first is None:
                continue
            while again and again[0] < first:
                yield again.popleft()
            again.extend(second)
            if first > after:
                yield first
        yield from again


def _zone(text: str, time_zone: str | None, local: tzinfo) -> tuple[tzinfo, str]:
    """Return the zone, and the schedule without it. `time_zone` is ignored if the schedule contains TZ."""
    if text.startswith(_ZONE_PREFIXES):
        prefix, _, rest = text.partition(" ")
        name = prefix.partition("=")[2]
        return local if name == LOCAL else zone_named(name), rest.lstrip()
    if time_zone is None or "TZ" in text:
        return local, text
    try:
        return zone_named(time_zone), text
    except ValueError:
        return local, text


def _every(distance: timedelta, since: datetime, after: datetime) -> Iterator[datetime]:
    since = since.astimezone(UTC).replace(microsecond=0)
    run = since + (after - since) // distance * distance
    while True:
        run += distance
        yield run


def _fitting(fields: str, after: datetime) -> Iterator[datetime]:
    """Yield wall-clock times later than the naive one that match the fields."""
    try:
        times = CronSim(fields, after)
    except CronSimError:  # no month has such a day: the fields were checked before
        return
    for time in times:
        if time.year > after.year + SEARCHED_YEARS:
            return
        after = time
        yield time


def whole_seconds(text: str) -> timedelta:
    """Parse a duration, without fractions of a second. Raises ValueError."""
    if len(text) > _MOST_CHARACTERS or not _DURATION.fullmatch(text):
        raise ValueError(f"invalid duration {text!r}")
    terms = (Decimal(number) * _NANOSECONDS[unit] for number, unit in _TERM.findall(text))
    nanoseconds = int(sum(terms, Decimal(0)))
    if nanoseconds > _MOST:
        raise ValueError(f"invalid duration {text!r}: too long")
    seconds = nanoseconds // _NANOSECONDS["s"]
    return timedelta(seconds=-seconds if text.startswith("-") else seconds)


MACROS: Mapping[str, str] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

LONGEST = 1000
"""The most characters of a schedule: all numbers of all fields take half as many."""

_STARS = ("*", "?")
_PART = re.compile(r"(?P<low>[^-/]+)(-(?P<high>[^-/]+))?(/(?P<step>[^-/]+))?")
_NUMBER = re.compile(r"[0-9]{1,18}")


class Field(msgspec.Struct, frozen=True):
    """One of the five fields: its numbers, and the names that some of them have."""

    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()  # of the numbers from `least` on

    def rewritten(self, text: str) -> str:
        """Return the field as a star, or as its numbers in order. Raises ValueError."""
        parts = [self._part(part) for part in text.split(",")]
        if any(star for star, _ in parts):
            return "*"
        return ",".join(map(str, sorted({number for _, numbers in parts for number in numbers})))

    def _part(self, text: str) -> tuple[bool, Iterable[int]]:
        """Return whether an element of a list is an unrestricted star, and its numbers."""
        found = _PART.fullmatch(text)
        if found is None:
            raise self._error(text, "is not a number, range or step")
        low, high, step = found["low"], found["high"], found["step"]
        every = 1 if step is None else self._step(step)
        if low in _STARS and high is None:
            return every == 1, range(self.least, self.most + 1, every)
        first = self._number(low)
        last = self._number(high) if high else first if step is None else self.most
        if first > last:
            raise self._error(text, "is a range that ends before it begins")
        return False, range(first, last + 1, every)

    def _step(self, text: str) -> int:
        if not _NUMBER.fullmatch(text) or int(text) == 0:
            raise self._error(text, "is not a step")
        return int(text)

    def _number(self, text: str) -> int:
        if text.lower() in self.names:
            return self.least + self.names.index(text.lower())
        if not _NUMBER.fullmatch(text) or not self.least <= int(text) <= self.most:
            raise self._error(text, f"is not in {self.least}-{self.most}")
        return int(text)

    def _error(self, text: str, what: str) -> ValueError:
        return ValueError(f"{self.name}: {text!r} {what}")


FIELDS = (
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    Field("day of month", 1, 31),
    Field("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    Field("day of week", 0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)


def rewritten(text: str) -> str:
    """Return the schedule in five fields of stars and numbers, macros expanded. Raises ValueError with the reason."""
    if len(text) > LONGEST:
        raise ValueError(f"a schedule must be no more than {LONGEST} characters")
    if text.startswith("@") and text not in MACROS:
        raise ValueError(f"unrecognized descriptor: {text}")
    fields = MACROS.get(text, text).split()
    if len(fields) != len(FIELDS):
        raise ValueError(f"expected exactly {len(FIELDS)} fields, found {len(fields)}: {text!r}")
    return " ".join(field.rewritten(part) for field, part in zip(FIELDS, fields, strict=True))
