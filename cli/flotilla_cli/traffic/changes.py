"""Which fields of an object differ between two versions, as paths that people recognise."""

from collections.abc import Iterator
from typing import Any, cast

from flotilla_common.api.documents import Json

_NOISE = ("metadata.resourceVersion", "metadata.managedFields", "metadata.generation")
_NAMES = ("name", "type", "uid", "key")
"""Members that identify an item of a list: containers by name, conditions by type."""

DEEPEST = 6


def changed_paths(before: Json, after: Json) -> list[str]:
    """Paths such as `status.conditions[Ready]` and `spec.containers[main].image`, in document order."""
    return [path for path in _walk(before, after, "", 0) if not path.startswith(_NOISE)]


def _walk(before: Any, after: Any, path: str, depth: int) -> Iterator[str]:
    if before == after:
        return
    old, new = _members(before), _members(after)
    condition = isinstance(after, dict) and "lastTransitionTime" in after
    if old is None or new is None or condition or depth == DEEPEST:
        yield path
        return
    for key in [*new, *(key for key in old if key not in new)]:
        inner = f"{path}{key}" if key.startswith("[") or not path else f"{path}.{key}"
        if key not in old or key not in new:
            yield inner
        else:
            yield from _walk(old[key], new[key], inner, depth + 1)


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
