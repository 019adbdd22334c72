"""Reads and changes raw JSON documents, so that admission, conversion and generated manifests keep unknown fields.

The readers are tolerant: a member that is absent, null or of another type reads as empty. Callers that must refuse
wrong types decode the document first.
"""

from typing import Any, TypeGuard, TypeVar, cast

import msgspec

T = TypeVar("T")

Json = dict[str, Any]
JsonValue = Json | list[Any] | str | int | float | bool | None


def mapping(value: object) -> Json:
    """Return the value if it is an object, else an empty object that is not part of the document."""
    return cast("Json", value) if isinstance(value, dict) else {}


def is_object(value: object) -> TypeGuard[Json]:
    """Report whether the value is an object."""
    return isinstance(value, dict)


def sequence(value: object) -> list[Any]:
    """Return the value if it is an array, else an empty one that is not part of the document."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def mappings(value: object) -> list[Json]:
    """Return the objects in an array."""
    return [cast("Json", item) for item in sequence(value) if isinstance(item, dict)]


def merge_patch(before: Json, after: Json) -> Json:
    """Return the JSON merge patch (RFC 7386) that turns `before` into `after`; empty for equal documents."""
    patch: Json = dict.fromkeys(before.keys() - after.keys())
    for key, value in after.items():
        held = before.get(key)
        if held == value and key in before:
            continue
        patch[key] = merge_patch(held, value) if is_object(held) and is_object(value) else value
    return patch


def merge(target: object, patch: object) -> Any:
    """Return the target with the JSON merge patch (RFC 7386) applied.

    The target is not changed, and shares all untouched parts with the result: comparing, encoding and keeping many
    versions stays cheap.
    """
    if not isinstance(patch, dict):
        return patch
    result: Json = dict(cast("Json", target)) if isinstance(target, dict) else {}
    for key, value in cast("Json", patch).items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def member(document: Json, *path: str) -> Json:
    """Return the object at the path, else an empty one that is not part of the document."""
    for key in path:
        document = mapping(document.get(key))
    return document


def ensured(document: Json, key: str) -> Json:
    """Return the object member; create it if it is absent or null."""
    if document.get(key) is None:
        document[key] = {}
    return mapping(document[key])


def fill(document: Json, **defaults: JsonValue) -> None:
    """Set the members that are absent or null."""
    for key, value in defaults.items():
        if document.get(key) is None:
            document[key] = value


def fill_empty(document: Json, **defaults: str) -> None:
    """Set the members that are absent, null or empty."""
    for key, value in defaults.items():
        document[key] = document.get(key) or value


def without_nulls(value: JsonValue) -> Any:
    """Return the value without null members, which are absent to Kubernetes, at every depth but in arrays."""
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    if not is_object(value):
        return value
    return {key: without_nulls(item) for key, item in value.items() if item is not None}


def typed(value: object, kind: type[T]) -> T:
    """Convert the value to the type; null is absent. Raises ValueError for a wrong type."""
    return msgspec.convert(without_nulls(cast("JsonValue", value)), kind)


def strings(value: object) -> dict[str, str]:
    """Return the string members of an object such as labels and annotations."""
    return {key: item for key, item in mapping(value).items() if isinstance(item, str)}


def text(value: object) -> str:
    """Return the value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""
