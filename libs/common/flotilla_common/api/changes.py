"""Computes the difference between two JSON documents, and redacts it for people.

`differences` are the smallest values that differ, and their paths: it compares objects member by member, arrays by
position, everything else as a whole. `changes` names the fields, and the items of lists by their names.

`redacted_changes` shows values only where they cannot be secrets. Environments, arguments, probes and annotations often
hold passwords. So strings are shown only in a list of fields that never hold any; numbers and booleans are shown
everywhere but in environments and data.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, cast

import msgspec

from flotilla_common.api.documents import Json, JsonValue, is_object, member

_NOISE = ("metadata.resourceVersion", "metadata.managedFields", "metadata.generation")
_NAMES = ("name", "type", "uid", "key")
"""Members that identify an item of a list: containers by name, conditions by type."""

DEEPEST = 6

Path = tuple[str | int, ...]
_Members = dict[Any, JsonValue]


class Difference(msgspec.Struct, frozen=True):
    """One change; `value` is the new one (None for a removal)."""

    op: Literal["add", "remove", "replace"]
    path: Path
    value: Any = None


def differences(before: JsonValue, after: JsonValue, path: Path = ()) -> Iterator[Difference]:
    """Yield the changes that turn `before` into `after`, in an applicable order; none for equal documents."""
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
    """Return the value at the path, or None."""
    for part in path:
        if is_object(document):
            document = document.get(str(part))
        elif isinstance(document, list) and isinstance(part, int) and part < len(document):
            document = document[part]
        else:
            return None
    return document


def path_text(path: Path, document: JsonValue = None) -> str:
    """Return the path as text; items of lists by their names, if the document has them."""
    text = ""
    for position, part in enumerate(path):
        if isinstance(part, int):
            item = value_at(document, path[: position + 1])
            name = item.get("name") if is_object(item) else None
            text += f"[{name if isinstance(name, str) else part}]"
        else:
            text += f".{part}" if text else part
    return text


class Change(msgspec.Struct, frozen=True):
    """A field that differs; `before` or `after` is None if the field was or is absent."""

    path: str
    before: Any
    after: Any


def changed_paths(before: Json, after: Json) -> list[str]:
    """Return paths such as `status.conditions[Ready]` and `spec.containers[main].image`, in document order."""
    return [change.path for change in changes(before, after) if not change.path.startswith(_NOISE)]


def changes(before: Json, after: Json, deepest: int = DEEPEST) -> Iterator[Change]:
    """Yield the fields that differ, in document order; deeper than `deepest` levels a field counts as a whole."""
    return _walk(before, after, "", deepest)


def _walk(before: Any, after: Any, path: str, left: int) -> Iterator[Change]:
    if before == after:
        return
    old, new = _parts(before), _parts(after)
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


def _parts(value: Any) -> dict[str, Any] | None:
    """Return the parts of a container by name; None for a scalar, and for a list of items without names."""
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


LONGEST_VALUE = 100
"""The number of characters of a value that are shown."""

MOST_CHANGES = 20
"""The number of changed fields that are shown; a replaced template may have hundreds."""

_DEEPEST = 12
_PLAIN = re.compile(
    r"(\.|^)(image|imagePullPolicy|type|[a-zA-Z]*[pP]olicy|partition|maxUnavailable|maxSurge|serviceAccountName|schedulerName"
    r"|priorityClassName|nodeName|serviceName|parallelism|cpu|memory|storage|ephemeral-storage|runtimeClassName)$"
    r"|^metadata\.labels\.|\.matchLabels\."
)
_HIDING = re.compile(r"\.(env|envFrom|data|stringData|args|command)\b|^metadata\.annotations\.")


def redacted_changes(before: Json, after: Json, *, values: bool = True) -> list[Json]:
    """Return the changes of spec, labels and annotations as `{"path", "from", "to"}`.

    Values that may be secrets are left out, and all values without `values`. Changes beyond MOST_CHANGES are summed up
    as `{"path": "and N more"}`.
    """
    found = list(_wishes(before, after))
    shown: list[Json] = [_shown(change, values=values) for change in found[:MOST_CHANGES]]
    return shown + ([{"path": f"and {len(found) - MOST_CHANGES} more"}] if len(found) > MOST_CHANGES else [])


def _wishes(before: Json, after: Json) -> Iterator[Change]:
    yield from changes({"spec": before.get("spec", {})}, {"spec": after.get("spec", {})}, _DEEPEST)
    for part in ("labels", "annotations"):
        old, new = member(before, "metadata", part), member(after, "metadata", part)
        yield from changes({"metadata": {part: old}}, {"metadata": {part: new}}, 3)


def _shown(change: Change, *, values: bool) -> Json:
    shown: Json = {"path": change.path}
    if values and _is_shown(change.path, change.before) and _is_shown(change.path, change.after):
        shown |= {"from": _cut(change.before), "to": _cut(change.after)}
    return shown


def _is_shown(path: str, value: Any) -> bool:
    if _HIDING.search(path):
        return False
    return value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and _plain(path))


def _plain(path: str) -> bool:
    return _PLAIN.search(path) is not None


def _cut(value: Any) -> Any:
    return f"{value[: LONGEST_VALUE - 1]}…" if isinstance(value, str) and len(value) > LONGEST_VALUE else value


def change_text(change: Mapping[str, Any]) -> str:
    """Return a changed field as `spec.replicas  3 → 5`, or the path alone if its values are redacted."""
    path = str(change.get("path", ""))
    if "to" not in change:
        return path
    return f"{path}  {_value(change.get('from'))} → {_value(change.get('to'))}"


def _value(value: object) -> str:
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
