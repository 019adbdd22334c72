"""Times of runs: the grammar and the clocks (advancedcronjob.md §4.4)."""

import re
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flotilla_common.api.kinds.advancedcronjob.schedule import Schedule

NOON = datetime(2026, 3, 4, 12, 0, 30, tzinfo=UTC)  # a Wednesday


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def runs(schedule: str, after: datetime = NOON, count: int = 3, zone: str | None = None) -> list[str]:
    """Return the next runs in UTC: `03-04 12:01`."""
    found = islice(Schedule.parse(schedule, zone).runs(after), count)
    return [f"{run:%m-%d %H:%M}" + (f":{run:%S}" if run.second else "") for run in found]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("* * * * *", ["03-04 12:01", "03-04 12:02", "03-04 12:03"]),
        ("*/1 * * * *", ["03-04 12:01", "03-04 12:02", "03-04 12:03"]),
        ("? ? ? ? ?", ["03-04 12:01", "03-04 12:02", "03-04 12:03"]),
        ("  5,10\t*  * *  * ", ["03-04 12:05", "03-04 12:10", "03-04 13:05"]),
        ("*/25 * * * *", ["03-04 12:25", "03-04 12:50", "03-04 13:00"]),
        ("?/25 * * * *", ["03-04 12:25", "03-04 12:50", "03-04 13:00"]),
        ("*/100 * * * *", ["03-04 13:00", "03-04 14:00", "03-04 15:00"]),
        ("50/5 * * * *", ["03-04 12:50", "03-04 12:55", "03-04 13:50"]),
        ("1-5/2 * * * *", ["03-04 12:01", "03-04 12:03", "03-04 12:05"]),
        ("007 13 * * *", ["03-04 13:07", "03-05 13:07", "03-06 13:07"]),
        ("0 0 * FEB-apr,Dec *", ["03-05 00:00", "03-06 00:00", "03-07 00:00"]),
        ("0 0 * * MON", ["03-09 00:00", "03-16 00:00", "03-23 00:00"]),
        ("0 0 * * fri-Sat", ["03-06 00:00", "03-07 00:00", "03-13 00:00"]),
        ("0 0 * * sun/3", ["03-07 00:00", "03-08 00:00", "03-11 00:00"]),
        ("@yearly", ["01-01 00:00", "01-01 00:00", "01-01 00:00"]),
        ("@annually", ["01-01 00:00", "01-01 00:00", "01-01 00:00"]),
        ("@monthly", ["04-01 00:00", "05-01 00:00", "06-01 00:00"]),
        ("@weekly", ["03-08 00:00", "03-15 00:00", "03-22 00:00"]),
        ("@daily", ["03-05 00:00", "03-06 00:00", "03-07 00:00"]),
        ("@midnight", ["03-05 00:00", "03-06 00:00", "03-07 00:00"]),
        ("@hourly", ["03-04 13:00", "03-04 14:00", "03-04 15:00"]),
        ("0 0 29 2 *", ["02-29 00:00", "02-29 00:00", "02-29 00:00"]),
        ("@every 90s", ["03-04 12:02", "03-04 12:03:30", "03-04 12:05"]),
        ("@every 1h30m", ["03-04 13:30:30", "03-04 15:00:30", "03-04 16:30:30"]),
        ("@every 1.5h0.9s", ["03-04 13:30:30", "03-04 15:00:30", "03-04 16:30:30"]),
        ("@every 2500ms", ["03-04 12:00:32", "03-04 12:00:34", "03-04 12:00:36"]),
        ("@every 10us", ["03-04 12:00:31", "03-04 12:00:32", "03-04 12:00:33"]),
        ("@every -5m", ["03-04 12:00:31", "03-04 12:00:32", "03-04 12:00:33"]),
        ("@every 0", ["03-04 12:00:31", "03-04 12:00:32", "03-04 12:00:33"]),
    ],
)
def test_what_a_schedule_means(schedule: str, expected: list[str]):
    assert runs(schedule) == expected


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        ("10 * 1", ["03-09", "03-10", "03-16"]),
        ("* * 1", ["03-09", "03-16", "03-23"]),
        ("*/1 * 1", ["03-09", "03-16", "03-23"]),
        ("? * 1", ["03-09", "03-16", "03-23"]),
        ("5,* * 1", ["03-09", "03-16", "03-23"]),
        ("*/2 * 1", ["03-05", "03-07", "03-09"]),
        ("6 * *", ["03-06", "04-06", "05-06"]),
        ("6 * */1", ["03-06", "04-06", "05-06"]),
        ("6 * */2", ["03-05", "03-06", "03-07"]),  # Sunday, Tuesday, Thursday, Saturday
        ("6 * 0-6", ["03-05", "03-06", "03-07"]),
        ("1-31 * 1", ["03-05", "03-06", "03-07"]),
        ("31 2 1", ["02-01", "02-08", "02-15"]),
    ],
)
def test_both_days_when_one_is_a_star_else_either(days: str, expected: list[str]):
    assert [run[:5] for run in runs(f"0 0 {days}")] == expected


def test_23_the_first_of_the_month_or_a_monday():
    assert runs("0 0 1 * 1", utc("2026-03-30 12:00")) == ["04-01 00:00", "04-06 00:00", "04-13 00:00"]


@pytest.mark.parametrize(
    ("schedule", "error"),
    [
        ("", "expected exactly 5 fields, found 0"),
        ("* * * *", "expected exactly 5 fields, found 4"),
        ("* * * * * *", "expected exactly 5 fields, found 6"),
        ("0 0 * * 7", "day of week: '7' is not in 0-6"),
        ("0 0 * * 5-7", "day of week: '7' is not in 0-6"),
        ("60 * * * *", "minute: '60' is not in 0-59"),
        ("* 24 * * *", "hour: '24' is not in 0-23"),
        ("* * 0 * *", "day of month: '0' is not in 1-31"),
        ("* * * 13 *", "month: '13' is not in 1-12"),
        ("* * * mon *", "month: 'mon' is not in 1-12"),
        ("jan * * * *", "minute: 'jan' is not in 0-59"),
        ("*/0 * * * *", "minute: '0' is not a step"),
        ("*/x * * * *", "minute: 'x' is not a step"),
        ("*/jan * * jan *", "minute: 'jan' is not a step"),
        ("5-1 * * * *", "minute: '5-1' is a range that ends before it begins"),
        ("1-2-3 * * * *", "is not a number, range or step"),
        ("1/2/3 * * * *", "is not a number, range or step"),
        ("-5 * * * *", "is not a number, range or step"),
        ("1,,2 * * * *", "is not a number, range or step"),
        ("+5 * * * *", "is not in 0-59"),
        ("*-5 * * * *", "is not in 0-59"),
        ("1.5 * * * *", "is not in 0-59"),
        ("٣ * * * *", "is not in 0-59"),
        (f"{'9' * 900} * * * *", "is not in 0-59"),
        (f"*/{'9' * 900} * * * *", "is not a step"),
        ("* * L * *", "day of month: 'L' is not in 1-31"),
        ("* * 15W * *", "day of month: '15W' is not in 1-31"),
        ("* * * * 1#2", "day of week: '1#2' is not in 0-6"),
        ("* * * * 5L", "day of week: '5L' is not in 0-6"),
        ("@reboot", "unrecognized descriptor: @reboot"),
        ("@Daily", "unrecognized descriptor: @Daily"),
        ("@daily *", "unrecognized descriptor"),
        ("@every", "unrecognized descriptor"),
        ("@every ", "invalid duration ''"),
        ("@every 5", "invalid duration '5'"),
        ("@every 5d", "invalid duration '5d'"),
        ("@every 1e3s", "invalid duration"),
        ("@every 2562048h", "too long"),
        (f"@every {'9' * 5000}h", "invalid duration"),
        ("TZ=X", "unknown time zone 'X'"),
        ("TZ=Asia/Tokyo", "expected exactly 5 fields, found 0"),
        ("TZ=Asia/Tokyo ", "expected exactly 5 fields, found 0"),
        ("TZ= * * * * *", "unknown time zone ''"),
        ("CRON_TZ=Mars/One * * * * *", "unknown time zone 'Mars/One'"),
        ("TZ=../etc * * * * *", "unknown time zone '../etc'"),
        ("TZ=/etc/localtime * * * * *", "unknown time zone '/etc/localtime'"),
        ("TZ=Europe * * * * *", "unknown time zone 'Europe'"),
        ("TZ=__init__.py * * * * *", "unknown time zone '__init__.py'"),
        ("TZ=a\0b * * * * *", "unknown time zone"),
        ("TZ=\ud800 * * * * *", "unknown time zone"),
        (f"TZ={'x' * 5000} * * * * *", "unknown time zone"),
        ("* TZ=UTC * * *", "hour: 'TZ=UTC' is not in 0-23"),
    ],
)
def test_what_is_refused(schedule: str, error: str):
    with pytest.raises(ValueError, match=re.escape(error)):
        Schedule.parse(schedule)


@given(
    st.text()
    | st.text("0123456789*?/,- @TZCRON_=everymondhs.")
    | st.lists(st.sampled_from(["*", "1", "*/2", "?", "0-5", "sun", "7", ",", "TZ=", "@every"])).map(" ".join)
)
def test_whatever_the_text_nothing_but_a_value_error(text: str):
    for zone in (None, text):
        try:
            assert Schedule.parse(text, zone).next(NOON) != NOON
        except ValueError as error:
            assert str(error)  # noqa: PT017 - some are schedules


@pytest.mark.parametrize("schedule", ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 30,31 feb ?"])
def test_a_day_that_never_comes(schedule: str):
    assert Schedule.parse(schedule).next(NOON) is None


def test_a_leap_day_that_is_more_than_five_years_away():
    assert Schedule.parse("0 0 29 2 *").next(utc("2096-03-01 00:00")) is None
    assert Schedule.parse("0 0 29 2 *").next(utc("2099-03-01 00:00")) == utc("2104-02-29 00:00")


@pytest.mark.parametrize("schedule", ["* * * * *", "TZ=Asia/Tokyo 0 0 * * *", "@every 90s"])
def test_the_calendar_ends(schedule: str):
    assert Schedule.parse(schedule).next(utc("9999-12-31 23:59:30")) is None


def test_a_run_is_strictly_later_and_in_whole_seconds():
    schedule = Schedule.parse("* * * * *")
    assert schedule.next(utc("2026-03-04 12:00:00")) == utc("2026-03-04 12:01")
    assert schedule.next(utc("2026-03-04 11:59:59.900000")) == utc("2026-03-04 12:00")
    assert schedule.next(utc("2026-03-04 12:00:00.100000")) == utc("2026-03-04 12:01")
    assert Schedule.parse("@every 1s").next(utc("2026-03-04 12:00:00.900000")) == utc("2026-03-04 12:00:01")


@pytest.mark.parametrize(
    ("schedule", "zone", "expected"),
    [
        ("0 9 * * ?", "Asia/Tokyo", "03-05 00:00"),
        ("CRON_TZ=Asia/Tokyo 0 9 * * ?", None, "03-05 00:00"),
        ("TZ=Asia/Tokyo   0 9 * * ?", None, "03-05 00:00"),
        ("TZ=Asia/Tokyo @daily", None, "03-04 15:00"),
        ("TZ=Asia/Tokyo 0 9 * * ?", "Europe/Berlin", "03-05 00:00"),
        ("0 9 * * ?", "Mars/One", "03-05 08:00"),  # unknown here: the zone of the process
        ("0 9 * * ?", "", "03-05 08:00"),
        ("0 9 * * ?", "Local", "03-05 08:00"),
        ("0 9 * * ?", None, "03-05 08:00"),
        ("TZ=Local 0 9 * * ?", None, "03-05 08:00"),
        ("TZ=UTC 0 9 * * ?", None, "03-05 09:00"),
    ],
)
def test_19_20_zones(schedule: str, zone: str | None, expected: str):
    run = Schedule.parse(schedule, zone, ZoneInfo("Europe/Berlin")).next(NOON)
    assert run is not None
    assert f"{run:%m-%d %H:%M}" == expected


def test_missed_runs():
    schedule, since = Schedule.parse("* * * * *"), utc("2026-03-04 12:00")
    assert schedule.missed(since, utc("2026-03-04 12:00:59"), 100) == []
    assert schedule.missed(since, utc("2026-03-04 12:02"), 100) == [utc("2026-03-04 12:01"), utc("2026-03-04 12:02")]
    assert len(schedule.missed(since, utc("2026-03-04 13:40"), 100)) == 100
    assert len(schedule.missed(since, utc("2026-03-05 12:00"), 100)) == 101
    assert schedule.missed(utc("2026-03-04 12:02"), since, 100) == []
