"""Days of clock changes (advancedcronjob.md §4.4): by hand, and against an oracle.

The oracle walks through all minutes of such days in many zones and reads the clock at each.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flotilla_common.api.kinds.advancedcronjob.schedule import Schedule

CHANGES = {
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "Europe/London": ("2026-03-29", "2026-10-25"),
    "Australia/Lord_Howe": ("2026-10-03", "2026-04-04"),  # by half an hour
    "America/Sao_Paulo": ("2018-11-04", "2018-02-17"),  # at midnight, forward and back
    "Asia/Beirut": ("2026-03-28", "2026-10-24"),
    "Africa/Cairo": ("2026-04-23", "2026-10-29"),
    "Pacific/Apia": ("2011-12-29", "2012-03-31"),  # a whole day is left out
    "Asia/Kolkata": ("2026-01-01",),  # never
}
DAY_AND_A_HALF = 36 * 60  # minutes
DAYS = [(zone, day) for zone, days in CHANGES.items() for day in days]


def local(schedule: str, zone: str, after: str, until: str) -> list[str]:
    """Return the runs between two moments in UTC, as clocks of the zone show them: `01:30-04:00` with the offset."""
    begin, end = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (after, until))
    found = Schedule.parse(schedule, zone).missed(begin, end, 1000)
    return [f"{run.astimezone(ZoneInfo(zone)).isoformat(timespec='minutes')[11:]}" for run in found]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("30 2 * * *", []),
        ("0 2-3 * * *", ["03:00-04:00"]),
        ("*/30 1-3 * * *", ["01:00-05:00", "01:30-05:00", "03:00-04:00", "03:30-04:00"]),
    ],
)
def test_a_time_that_clocks_skip_is_not_run(schedule: str, expected: list[str]):
    assert local(schedule, "America/New_York", "2026-03-08 05:00", "2026-03-08 08:00") == expected


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("30 1 * * *", ["01:30-04:00", "01:30-05:00"]),
        ("0 2 * * *", ["02:00-05:00"]),
        ("*/30 1,2 * * *", ["01:00-04:00", "01:30-04:00", "01:00-05:00", "01:30-05:00", "02:00-05:00", "02:30-05:00"]),
    ],
)
def test_a_time_that_clocks_show_twice_is_run_twice(schedule: str, expected: list[str]):
    assert local(schedule, "America/New_York", "2026-11-01 04:30", "2026-11-01 08:00") == expected


def test_asked_within_the_hour_that_comes_twice():
    schedule = Schedule.parse("*/15 * * * *", "Europe/Berlin")
    first = datetime(2026, 10, 25, 0, 50, tzinfo=UTC)  # 02:50 summer time; the clocks go back at 03:00
    assert schedule.next(first) == datetime(2026, 10, 25, 1, 0, tzinfo=UTC)  # the second 02:00
    again = datetime(2026, 10, 25, 1, 50, tzinfo=UTC)  # 02:50 winter time
    assert schedule.next(again) == datetime(2026, 10, 25, 2, 0, tzinfo=UTC)  # 03:00


def test_midnight_that_does_not_exist_and_midnight_that_comes_twice():
    assert local("0 0 * * *", "America/Sao_Paulo", "2018-11-03 12:00", "2018-11-05 12:00") == ["00:00-02:00"]
    assert local("30 23 * * *", "America/Sao_Paulo", "2018-02-17 12:00", "2018-02-18 12:00") == [
        "23:30-02:00",
        "23:30-03:00",
    ]


def test_half_an_hour():
    zone = "Australia/Lord_Howe"
    assert local("45 1 * * *", zone, "2026-04-04 12:00", "2026-04-04 18:00") == ["01:45+11:00", "01:45+10:30"]
    assert local("15 2 * * *", zone, "2026-10-03 12:00", "2026-10-03 18:00") == []


class Field(msgspec.Struct, frozen=True):
    """A field as it is written, and its meaning."""

    text: str
    numbers: frozenset[int]
    star: bool = False


def _elements(least: int, most: int) -> st.SearchStrategy[Field]:
    numbers = st.integers(least, most)
    drawn = st.tuples(numbers, numbers, st.integers(1, 9))
    return drawn.map(lambda three: _forms(least, most, min(three[:2]), max(three[:2]), three[2])).flatmap(
        st.sampled_from
    )


def _forms(least: int, most: int, low: int, high: int, step: int) -> list[Field]:
    return [
        Field("*", frozenset(range(least, most + 1)), star=True),
        Field(f"*/{step}", frozenset(range(least, most + 1, step)), star=step == 1),
        Field(str(low), frozenset([low])),
        Field(f"{low}-{high}", frozenset(range(low, high + 1))),
        Field(f"{low}-{high}/{step}", frozenset(range(low, high + 1, step))),
        Field(f"{low}/{step}", frozenset(range(low, most + 1, step))),
    ]


def _fields(least: int, most: int) -> st.SearchStrategy[Field]:
    return st.lists(_elements(least, most), min_size=1, max_size=3).map(_joined)


def _joined(parts: Iterable[Field]) -> Field:
    parts = list(parts)
    numbers = frozenset(number for part in parts for number in part.numbers)
    return Field(",".join(part.text for part in parts), numbers, any(part.star for part in parts))


FIELDS = st.tuples(_fields(0, 59), _fields(0, 23), _fields(1, 31), _fields(1, 12), _fields(0, 6))


@cache
def _minutes(zone: str, day: str) -> list[tuple[datetime, datetime]]:
    """Return all minutes of a day and a half with the change, in UTC and by the clocks of the zone."""
    begin = datetime.fromisoformat(day).replace(tzinfo=UTC)
    moments = [begin + timedelta(minutes=minute) for minute in range(DAY_AND_A_HALF)]
    return [(moment, moment.astimezone(ZoneInfo(zone))) for moment in moments]


def _fits(clock: datetime, fields: Sequence[Field]) -> bool:
    minute, hour, day, month, weekday = fields
    if clock.minute not in minute.numbers or clock.hour not in hour.numbers or clock.month not in month.numbers:
        return False
    days = clock.day in day.numbers, clock.isoweekday() % 7 in weekday.numbers
    return all(days) if day.star or weekday.star else any(days)


@pytest.mark.parametrize(("zone", "day"), DAYS)
@given(FIELDS, st.integers(0, DAY_AND_A_HALF - 1))
@settings(max_examples=20, deadline=None)
def test_the_same_as_walking_through_all_minutes(zone: str, day: str, fields: Sequence[Field], start: int):
    minutes = _minutes(zone, day)[start:]
    begin, end = minutes[0][0], minutes[-1][0]
    expected = [moment for moment, clock in minutes[1:] if _fits(clock, fields)]
    schedule = Schedule.parse(" ".join(field.text for field in fields), zone)
    assert schedule.missed(begin, end, len(minutes)) == expected
    for run, following in list(pairwise(expected))[::5]:
        assert schedule.next(run) == following
