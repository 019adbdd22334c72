"""The canonical typed form of a pod template (common.md §7.2).

Revisions are named after, and compared by, what Go writes when it decodes a template into the core/v1 types and encodes
it again: unknown members are gone, empty optional ones too, structs without pointer are always there, quantities are in
canonical form. The facts for that (`podschema/podschema.json`) are printed from those types by the small Go program
beside the table; here they are turned into one function per type.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, cast

import msgspec

from flotilla_common.api import quantity
from flotilla_common.api.documents import Json, JsonValue

Writer = Callable[[Any], JsonValue]
"""Turns a decoded value (None when absent) into what Go writes for it. Raises ValueError for a wrong type."""

_DECODER = msgspec.json.Decoder(float_hook=Decimal)


class _Kind(msgspec.Struct, frozen=True):
    """How Go treats a member of some type."""

    write: Writer
    omit_empty: bool = True  # a struct without pointer is written even with `omitempty`


class _Member(msgspec.Struct, frozen=True):
    """One JSON member of a struct."""

    name: str
    write: Writer
    omit_empty: bool
    omit_null: bool
    pointer: bool


def canonical_template(template: bytes | msgspec.Raw) -> Json:
    """The template as core/v1 types would write it: what revisions hold and hash. Raises ValueError when it is no JSON
    object or null, or a known member has the wrong type."""
    return canonical_object("PodTemplateSpec", template)


def canonical_object(type_name: str, document: bytes | msgspec.Raw) -> Json:
    """The same for another type of the table, such as PersistentVolumeClaimSpec; members are in Go's order."""
    try:
        value = _DECODER.decode(document)
    except msgspec.DecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    return cast("Json", _kind(type_name).write(value))


@cache
def _table() -> dict[str, list[tuple[str, str, str]]]:
    source = files("flotilla_common.api").joinpath("podschema/podschema.json").read_bytes()
    return msgspec.json.decode(source, type=dict[str, list[tuple[str, str, str]]])


@cache
def _kind(name: str) -> _Kind:
    if name.startswith("[]"):
        return _Kind(_list_writer(_kind(name[2:]).write))
    if name.startswith("{}"):
        return _Kind(_map_writer(_kind(name[2:]).write))
    if name in _SCALARS:
        return _SCALARS[name]
    return _Kind(_struct_writer(name), omit_empty=False)


def _struct_writer(name: str) -> Writer:
    members: list[_Member] = []

    def write(value: Any) -> JsonValue:
        if not members:  # filled at first use: types may contain themselves
            members.extend(_member(*entry) for entry in _table()[name])
        source = _typed(value, dict, {})
        result: Json = {}
        for member in members:
            _write_member(member, source.get(member.name), result)
        return result

    return write


def _member(name: str, flags: str, kind_name: str) -> _Member:
    kind = _kind(kind_name)
    pointer = "p" in flags
    # Newer types omit a zero creationTimestamp ("z"); the recipe is older and always has it as null.
    optional = "o" in flags and "z" not in flags
    return _Member(
        name=name,
        write=kind.write,
        omit_empty=optional and not pointer and kind.omit_empty,
        omit_null=optional and pointer,
        pointer=pointer,
    )


def _write_member(member: _Member, value: Any, result: Json) -> None:
    if value is None and member.pointer:
        if not member.omit_null:
            result[member.name] = None
        return
    written = member.write(value)
    if written or not member.omit_empty:
        result[member.name] = written


def _list_writer(element: Writer) -> Writer:
    def write(value: Any) -> JsonValue:
        return None if value is None else [element(item) for item in _typed(value, list, [])]

    return write


def _map_writer(element: Writer) -> Writer:
    def write(value: Any) -> JsonValue:
        return None if value is None else {key: element(item) for key, item in _typed(value, dict, {}).items()}

    return write


def _typed(value: Any, wanted: type[Any], zero: Any) -> Any:
    if value is None:
        return zero
    # True is an int in Python, but not in JSON.
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise ValueError(f"{value!r} should be of type {wanted.__name__}")
    return value


_SCALARS = {
    "string": _Kind(lambda value: _typed(value, str, "")),
    "bool": _Kind(lambda value: _typed(value, bool, False)),
    "int": _Kind(lambda value: _typed(value, int, 0)),
    "quantity": _Kind(lambda value: "0" if value is None else quantity.canonical(str(value)), omit_empty=False),
    "intorstring": _Kind(lambda value: value if isinstance(value, str) else _typed(value, int, 0), omit_empty=False),
    "time": _Kind(lambda value: value, omit_empty=False),
    "any": _Kind(lambda value: value),
}
