"""Integers and percentages in specs (common.md §4). Exact arithmetic: 99.95% of 1000 is 999.5, never 999.4999."""

import re
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TypeVar

from flotilla_common.api.meta import IntOrString

T = TypeVar("T")

LONGEST = 20
"""Characters of a number that is written as text: enough for 64 bits. Longer ones are none, and are not looked at."""

_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_LEAST, _MOST = -(1 << 31), (1 << 31) - 1


def integer(text: str) -> int | None:
    """Return the integer that the text is in decimal digits; None if it is none, or needs more than 64 bits."""
    return int(text) if len(text) <= LONGEST and _WHOLE.fullmatch(text) else None


def whole_number(value: IntOrString) -> int:
    """A 32-bit integer, or a string that is one. Raises ValueError."""
    number = integer(value) if isinstance(value, str) else value
    if number is None:
        raise ValueError(f"{value!r} is not an integer")
    if not _LEAST <= number <= _MOST:
        raise ValueError(f"{number} is not a 32-bit integer")
    return number


def strict_value(value: IntOrString, total: int, round_up: bool) -> int:
    """The number that `value` means of `total`, as a 32-bit integer holds it; a string must be a decimal percentage.
    Raises ValueError."""
    if isinstance(value, int):
        return _held(value)
    if not value.endswith("%"):
        raise ValueError(f"invalid value {value!r}: a string must end with %")
    return _percent(value, value[:-1], total, round_up)


def lenient_value(value: IntOrString, total: int, round_up: bool) -> int:
    """As `strict_value`, but a string without % is a percentage too ("5" is 5 %). Raises ValueError."""
    if isinstance(value, int):
        return _held(value)
    return _percent(value, value.replace("%", ""), total, round_up)


def partition_value(partition: IntOrString | None, replicas: int | None) -> int:
    """How many pods stay on old revisions, within 0 and `replicas` (missing: 1). Raises ValueError.

    A percentage below 100 % updates at least one pod of several.
    """
    if partition is None:
        return 0
    total = 1 if replicas is None else replicas
    kept = strict_value(partition, total, round_up=True)
    if total > 1 and kept == total and isinstance(partition, str) and partition != "100%":
        kept = total - 1
    return max(0, min(kept, total))


class Reading:
    """Reads the fields of a spec. `problems` names those that could not be read, and what is used instead."""

    def __init__(self) -> None:
        self._problems: list[str] = []

    @property
    def problems(self) -> tuple[str, ...]:
        """What was wrong so far."""
        return tuple(self._problems)

    def field(self, name: str, read: Callable[[], T], instead: T, told: str = "") -> T:
        """What `read` returns, or `instead` where it raises ValueError. `told`: how that is said."""
        try:
            return read()
        except ValueError as error:
            self._problems.append(f"{name}: {error}, {told or f'{instead} is used'}")
            return instead


def _percent(value: str, digits: str, total: int, round_up: bool) -> int:
    if len(digits) > LONGEST or not _DECIMAL.fullmatch(digits):
        raise ValueError(f"invalid value {value!r}: not a percentage")
    share = Decimal(digits) * total / 100
    return _held(int(share.to_integral_value(ROUND_CEILING if round_up else ROUND_FLOOR)))


def _held(number: int) -> int:
    return max(_LEAST, min(number, _MOST))
