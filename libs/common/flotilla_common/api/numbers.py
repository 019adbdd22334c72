"""Reads integers and percentages in specs (common.md §4).

Arithmetic is exact: 99.95% of 1000 is 999.5, never 999.4999.
"""

import re
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TypeVar

from flotilla_common.api.meta import IntOrString

T = TypeVar("T")

LONGEST = 20
"""The most characters of a number in text: enough for 64 bits. Longer texts are not parsed."""

_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_LEAST, _MOST = -(1 << 31), (1 << 31) - 1


def integer(text: str) -> int | None:
    """Return the decimal integer in the text; None if it is not an integer, or needs more than 64 bits."""
    return int(text) if len(text) <= LONGEST and _WHOLE.fullmatch(text) else None


def whole_number(value: IntOrString) -> int:
    """Return a 32-bit integer from a number or a string. Raises ValueError."""
    number = integer(value) if isinstance(value, str) else value
    if number is None:
        raise ValueError(f"{value!r} is not an integer")
    if not _LEAST <= number <= _MOST:
        raise ValueError(f"{number} is not a 32-bit integer")
    return number


def strict_value(value: IntOrString, total: int, round_up: bool) -> int:
    """Return the absolute value of a number or percentage of `total`, within 32 bits.

    A string must be a decimal percentage. Raises ValueError.
    """
    if isinstance(value, int):
        return _held(value)
    if not value.endswith("%"):
        raise ValueError(f"invalid value {value!r}: a string must end with %")
    return _percent(value, value[:-1], total, round_up)


def lenient_value(value: IntOrString, total: int, round_up: bool) -> int:
    """Return as `strict_value`, but accept a percentage without % ("5" is 5 %). Raises ValueError."""
    if isinstance(value, int):
        return _held(value)
    return _percent(value, value.replace("%", ""), total, round_up)


def partition_value(partition: IntOrString | None, replicas: int | None) -> int:
    """Return how many pods stay on old revisions, within 0 and `replicas` (missing: 1). Raises ValueError.

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
    """A tolerant reader of spec fields. `problems` lists invalid fields and the values used instead."""

    def __init__(self) -> None:
        self._problems: list[str] = []

    @property
    def problems(self) -> tuple[str, ...]:
        """Return the problems so far."""
        return tuple(self._problems)

    def field(self, name: str, read: Callable[[], T], instead: T, told: str = "") -> T:
        """Return the result of `read`, or `instead` if it raises ValueError, which is added to the problems."""
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
