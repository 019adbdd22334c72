"""Which fields of an object differ between two versions, as paths that people recognise."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from flotilla_common.api.documents import Json

_NOISE = ("metadata.resourceVersion", "metadata.managedFields", "metadata.generation")
_NAMES = ("name", "type", "uid", "key")
"""Members that identify an item of a list: containers by name, conditions by type."""

DEEPEST = 6


class Change(msgspec.Struct, frozen=True):
    """A field that differs; None where there was none, or is none any more."""

    path: str
    before: Any
    after: Any


def changed_paths(before: Json, after: Json) -> list[str]:
    """Paths such as `status.conditions[Ready]` and `spec.containers[main].image`, in document order."""
    return [change.path for change in changes(before, after) if not change.path.startswith(_NOISE)]


def changes(before: Json, after: Json, deepest: int = DEEPEST) -> Iterator[Change]:
    """The fields that differ, in document order; what is below `deepest` members counts as one field."""
    return _walk(before, after, "", deepest)


def _walk(before: Any, after: Any, path: str, left: int) -> Iterator[Change]:
    if before == after:
        return
    old, new = _members(before), _members(after)
    condition = isinstance(after, dict) and "lastTransitionTime" in after
    if old is None or new is None or condition or not left:
        yield Change(path, before, after)
        return
    for key in [*new, *(key for key in old if key not in new)]:
        inner = f"{path}{key}" if key.startswith("[") or not path else f"{path}.{key}"
        if key not in old or key not in new:
            yield Change(inner, old.get(key), new.get(key))
        else:
            yield from _walk(old[key], new[key], inner, left - 1)


def _members(value: Any) -> dict[str, Any] | None:
    """A container's parts by name; None for a scalar, and for a list whose items have no names."""
    if isinstance(value, dict):
        return cast("Json", value)
    if not isinstance(value, list):
        return None
    items = cast("list[Any]", value)
    named = {f"[{_name(item)}]": item for item in items if _name(item)}
    return named if items and len(named) == len(items) else None


def _name(item: Any) -> str:
    if not isinstance(item, dict):
        return ""
    document = cast("Json", item)
    return next((str(document[key]) for key in _NAMES if document.get(key)), "")
