"""The difference between two JSON trees, as the verdict over an in-place update needs it (common.md §9.2)."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from flotilla_common.api.documents import JsonValue
from flotilla_common.control.plan import Frozen

Path = tuple[str | int, ...]


class Op(StrEnum):
    """What happens at a path."""

    ADD = "add"
    REMOVE = "remove"
    REPLACE = "replace"


class Difference(Frozen):
    """One change; `value` is the new one (None for a removal)."""

    op: Op
    path: Path
    value: Any = None


def differences(old: JsonValue, new: JsonValue, path: Path = ()) -> Iterator[Difference]:
    """Objects are compared member by member, arrays index by index, everything else is replaced."""
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _members(old, new, path)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _members(dict(enumerate(old)), dict(enumerate(new)), path)
    elif old != new or isinstance(old, bool) != isinstance(new, bool):  # true is not 1
        yield Difference(op=Op.REPLACE, path=path, value=new)


def _members(old: dict[Any, JsonValue], new: dict[Any, JsonValue], path: Path) -> Iterator[Difference]:
    for key, value in old.items():
        if key in new:
            yield from differences(value, new[key], (*path, key))
        else:
            yield Difference(op=Op.REMOVE, path=(*path, key))
    for key, value in new.items():
        if key not in old:
            yield Difference(op=Op.ADD, path=(*path, key), value=value)
