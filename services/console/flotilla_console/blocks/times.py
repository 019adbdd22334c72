"""Moments and durations as text, as kubectl writes them."""

import math
from datetime import UTC, datetime

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_LAST = 253_402_300_799
"""The last second of the year 9999."""


def age(at: float, now: float) -> str:
    """Return the time since a moment: 12s, 5m, 3h, 2d."""
    if not _is_moment(at):
        return "unknown"
    seconds = max(0, math.floor(now - at))
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 2 * _HOUR:
        return f"{seconds // _MINUTE}m"
    return f"{seconds // _HOUR}h" if seconds < 2 * _DAY else f"{seconds // _DAY}d"


def stamp(at: float) -> str:
    """Return a moment for machines (RFC 3339), "" for a number out of range."""
    return f"{datetime.fromtimestamp(math.floor(at), UTC):%Y-%m-%dT%H:%M:%SZ}" if _is_moment(at) else ""


def moment(at: float) -> str:
    """Return a moment for people."""
    return stamp(at).replace("T", " ").replace("Z", " UTC") or "unknown"


def clock_time(at: float) -> str:
    """Return the time of day of a moment."""
    return moment(at)[11:19] or "unknown"


def _is_moment(at: float) -> bool:
    return math.isfinite(at) and 0 <= at <= _LAST
