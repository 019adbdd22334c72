"""Moments at the ends of the calendar, and numbers of seconds that users wrote."""

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest

from flotilla_common.api.meta import EARLIEST, LATEST, Condition, later, rfc3339

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "by", "expected"),
    [
        (NOW, 60, NOW + timedelta(minutes=1)),
        (NOW, timedelta(minutes=1), NOW + timedelta(minutes=1)),
        (NOW, -60, NOW - timedelta(minutes=1)),
        (NOW, 10**12, LATEST),
        (NOW, -(10**12), EARLIEST),
        (NOW, 10**400, LATEST),
        (NOW, -(2**63), EARLIEST),
        (LATEST, 0.001, LATEST),
        (LATEST, timedelta(seconds=1), LATEST),
        (EARLIEST, -1, EARLIEST),
    ],
)
def test_later(moment: datetime, by: float | timedelta, expected: datetime) -> None:
    assert later(moment, by) == expected


def test_moments_beyond_the_calendar_of_utc_are_shown_as_its_end() -> None:
    east, west = timezone(timedelta(hours=10)), timezone(timedelta(hours=-10))
    assert rfc3339(datetime(1, 1, 1, tzinfo=east)) == "0001-01-01T00:00:00Z"
    assert rfc3339(datetime(9999, 12, 31, 23, tzinfo=west)) == "9999-12-31T23:59:59Z"


@pytest.mark.parametrize("text", ["2020-01-01T00:00:00", "0000-01-01T00:00:00Z", "-001-01-01T00:00:00Z", "today"])
def test_a_time_without_a_zone_or_beyond_the_calendar_is_not_read(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(f'{{"lastTransitionTime": "{text}"}}', type=Condition)
