"""Reserved ordinals as they are written: numbers, and ranges such as `3-7` (statefulset.md §2, §4.2)."""

import re
from collections.abc import Iterable

from flotilla_common.api.meta import IntOrString

_RANGE = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")


def interval(item: IntOrString) -> tuple[int, int]:
    """The first and the last ordinal that the item reserves. Raises ValueError."""
    if isinstance(item, int):
        return item, item
    match = _RANGE.fullmatch(item)
    if match is None:
        raise ValueError(f"{item!r} is not a range of ordinals")
    first, last = int(match[1]), int(match[2])
    if first > last:
        raise ValueError(f"{item!r} ends before it starts")
    return first, last


def is_range(item: str) -> bool:
    """Whether the text looks like a range."""
    return _RANGE.fullmatch(item) is not None


def reserved(items: Iterable[IntOrString]) -> list[tuple[int, int]]:
    """What all items reserve, as intervals in the order given: a range of two billion is never expanded. Raises
    ValueError if one cannot be read."""
    return [interval(item) for item in items]
