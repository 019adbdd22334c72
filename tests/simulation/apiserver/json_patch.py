"""JSON patch (RFC 6902) on documents that are never changed in place. Users and our webhook send it, plans do not."""

from collections.abc import Sequence
from typing import Any, cast

from flotilla_common.control.plan import Json

ABSENT = object()


class PatchError(ValueError):
    """The patch does not fit the document."""


def apply_operations(document: Json, operations: Sequence[Json]) -> Json:
    """Apply all operations of a JSON patch to the document. Raises PatchError."""
    result: Any = document
    for operation in operations:
        result = _operation(result, operation)
    return cast("Json", result)


def _operation(document: Any, operation: Json) -> Any:
    kind, path = operation.get("op"), _pointer(str(operation.get("path", "")))
    match kind:
        case "add" | "replace" | "remove":
            return _change(document, path, operation.get("value") if kind != "remove" else ABSENT, str(kind))
        case "test":
            if lookup(document, path) != operation.get("value"):
                raise PatchError(f"testing value {operation.get('path')} failed: test failed")
            return document
        case "copy" | "move":
            source = _pointer(str(operation.get("from", "")))
            value = lookup(document, source)
            if kind == "move":
                document = _change(document, source, ABSENT, "remove")
            return _change(document, path, value, "add")
        case _:
            raise PatchError(f"Unexpected kind: {kind}")


def _pointer(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise PatchError(f"{text!r} is no JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def lookup(document: Any, path: Sequence[str]) -> Any:
    """Return the value at the path. Raises PatchError if there is none."""
    for part in path:
        if isinstance(document, dict) and part in document:
            document = cast("Json", document)[part]
        elif isinstance(document, list):
            items = cast("list[Any]", document)
            document = items[_index(items, part, len(items) - 1)]
        else:
            raise PatchError(f"no value at /{'/'.join(path)}")
    return document


def _change(document: Any, path: Sequence[str], value: Any, kind: str) -> Any:
    if not path:
        return value
    head, rest = path[0], path[1:]
    if isinstance(document, list):
        return _change_list(cast("list[Any]", document), head, rest, value, kind)
    if not isinstance(document, dict):
        raise PatchError(f"no object or array at {head}")
    result = dict(cast("Json", document))
    if rest or kind != "add":
        if head not in result:
            raise PatchError(f"{kind} operation does not apply: doc is missing key: /{head}")
        if rest:
            result[head] = _change(result[head], rest, value, kind)
            return result
    if value is ABSENT:
        del result[head]
    else:
        result[head] = value
    return result


def _change_list(items: list[Any], head: str, rest: Sequence[str], value: Any, kind: str) -> list[Any]:
    result = list(items)
    if rest:
        index = _index(items, head, len(items) - 1)
        result[index] = _change(items[index], rest, value, kind)
    elif kind == "add":
        result.insert(len(items) if head == "-" else _index(items, head, len(items)), value)
    elif value is ABSENT:
        del result[_index(items, head, len(items) - 1)]
    else:
        result[_index(items, head, len(items) - 1)] = value
    return result


def _index(items: list[Any], text: str, last: int) -> int:
    if not text.isdecimal() or int(text) > last:
        raise PatchError(f"invalid index {text} for an array of {len(items)}")
    return int(text)
