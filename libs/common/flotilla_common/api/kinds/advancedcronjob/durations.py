"""Durations as Go writes them: 1h30m, 90s, 1.5h."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Final

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


def whole_seconds(text: str) -> timedelta:
    """The duration without fractions of a second. Raises ValueError."""
    if len(text) > _MOST_CHARACTERS or not _DURATION.fullmatch(text):
        raise ValueError(f"invalid duration {text!r}")
    terms = (Decimal(number) * _NANOSECONDS[unit] for number, unit in _TERM.findall(text))
    nanoseconds = int(sum(terms, Decimal(0)))
    if nanoseconds > _MOST:
        raise ValueError(f"invalid duration {text!r}: too long")
    seconds = nanoseconds // _NANOSECONDS["s"]
    return timedelta(seconds=-seconds if text.startswith("-") else seconds)
