"""The difference between two JSON documents: the smallest values that differ, and where they are.

Objects are compared member by member, arrays by position, everything else as a whole.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from flotilla_common.api.documents import JsonValue, is_object

Path = tuple[str | int, ...]
_Members = dict[Any, JsonValue]


class Difference(msgspec.Struct, frozen=True):
    """One change; `value` is the new one (None for a removal)."""

    op: Literal["add", "remove", "replace"]
    path: Path
    value: Any = None


def differences(before: JsonValue, after: JsonValue, path: Path = ()) -> Iterator[Difference]:
    """What turns `before` into `after`, in an order in which it can be applied; nothing for equal documents."""
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _members(before, after, sorted(before.keys() | after.keys()), path)
    elif isinstance(before, list) and isinstance(after, list):
        held, wanted = dict(enumerate(before)), dict(enumerate(after))
        last_first = reversed(range(len(after), len(before)))
        yield from _members(held, wanted, (*wanted, *last_first), path)
    elif before != after or isinstance(before, bool) != isinstance(after, bool):  # true is not 1
        yield Difference("replace", path, after)


def _members(before: _Members, after: _Members, keys: Iterable[str | int], path: Path) -> Iterator[Difference]:
    for key in keys:
        here = (*path, key)
        if key not in after:
            yield Difference("remove", here)
        elif key not in before:
            yield Difference("add", here, after[key])
        else:
            yield from differences(before[key], after[key], here)


def value_at(document: JsonValue, path: Path) -> JsonValue:
    """What stands at the path; None for nothing."""
    for part in path:
        if is_object(document):
            document = document.get(str(part))
        elif isinstance(document, list) and isinstance(part, int) and part < len(document):
            document = document[part]
        else:
            return None
    return document


def path_text(path: Path, document: JsonValue = None) -> str:
    """The path as people write it; elements of lists by their names, where the document has them."""
    text = ""
    for position, part in enumerate(path):
        if isinstance(part, int):
            item = value_at(document, path[: position + 1])
            name = item.get("name") if is_object(item) else None
            text += f"[{name if isinstance(name, str) else part}]"
        else:
            text += f".{part}" if text else part
    return text
