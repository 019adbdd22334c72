"""Converts the text of a setting into its value.

A flag, an environment variable and a YAML scalar are all text at first, so there is one reader per type. A reader
raises ValueError with the end of a sentence that begins with the name of the setting: "must be …".
"""

import re
from collections.abc import Callable, Mapping

Reader = Callable[[str], object]

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_TRUE = frozenset({"", "1", "t", "true", "yes", "on"})  # empty: the bare flag
_FALSE = frozenset({"0", "f", "false", "no", "off"})
_LEVELS = ("debug", "info", "warning", "error")
_DEBUG_VERBOSITY = 5  # klog's levels up to 4 are for operators, from 5 on for developers
_RENEW_DAYS = {"d": 1, "m": 30, "y": 365}
RENEW_BEFORE_DEFAULT_DAYS = 180


def text(value: str) -> str:
    """Accept any text."""
    return value


def boolean(value: str) -> bool:
    """Read true or false, in the usual spellings."""
    lowered = value.lower()
    if lowered in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    raise ValueError("must be true or false")


def integer(low: int, high: int | None = None) -> Reader:
    """Return a reader of whole numbers within bounds."""
    bounds = f"of {low} or more" if high is None else f"from {low} to {high}"

    def read(value: str) -> int:
        if re.fullmatch(r"-?\d+", value) and low <= (number := int(value)) and (high is None or number <= high):
            return number
        raise ValueError(f"must be a whole number {bounds}")

    return read


def duration(value: str) -> float:
    """Read seconds from `15s`, `1m30s`, `250ms`, or from a plain number of seconds."""
    if re.fullmatch(r"\d+(\.\d+)?", value):
        return float(value)
    if _DURATION.fullmatch(value):
        return sum(float(number) * _UNITS[unit] for number, unit in _DURATION_PART.findall(value))
    raise ValueError("must be a duration like 15s, 1m30s or 250ms")


def port(value: str) -> int:
    """Read a TCP port, alone or at the end of an address: `8080`, `:8080`, `0.0.0.0:8080`."""
    digits = value.rpartition(":")[2]
    if re.fullmatch(r"\d+", digits) and int(digits) <= 65535:
        return int(digits)
    raise ValueError("must be a port from 0 to 65535")


def choice(*allowed: str) -> Reader:
    """Return a reader of one of a few words."""

    def read(value: str) -> str:
        if value in allowed:
            return value
        raise ValueError("must be one of " + ", ".join(word or "(empty)" for word in allowed))

    return read


def words(*allowed: str) -> Reader:
    """Return a reader of different words of a few, separated by commas; their order counts."""

    def read(value: str) -> str:
        given = [word.strip() for word in value.split(",")]
        if set(given) <= set(allowed) and len(set(given)) == len(given):
            return ",".join(given)
        raise ValueError("must be different ones of " + ", ".join(allowed))

    return read


def one_of(*allowed: int) -> Reader:
    """Return a reader of one of a few numbers."""

    def read(value: str) -> int:
        if value.isdecimal() and len(value) < 10 and int(value) in allowed:
            return int(value)
        raise ValueError("must be one of " + ", ".join(map(str, allowed)))

    return read


def log_level(value: str) -> str:
    """Read a level by name, or a klog verbosity (`--v=5`)."""
    if value.isdigit():
        return "debug" if int(value) >= _DEBUG_VERBOSITY else "info"
    return str(choice(*_LEVELS)(value.lower()))


def renew_before(value: str) -> int:
    """Read days from `90d`, `6m` (of 30 days) or `1y` (of 365); nonsense means the default (webhooks.md §4)."""
    match = re.fullmatch(r"(\d+)([dmy])", value)
    days = int(match[1]) * _RENEW_DAYS[match[2]] if match else 0
    return days or RENEW_BEFORE_DEFAULT_DAYS


OF_TYPE: Mapping[type, Reader] = {str: text, bool: boolean, float: duration}
"""The usual reader of each type."""
