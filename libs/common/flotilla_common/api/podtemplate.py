"""Computes the canonical typed form of a pod template (common.md §7.2).

Revisions are named after, and compared by, the JSON that Go writes after decoding a template into the core/v1 types:
unknown members and empty optional ones are gone, structs without pointer are always there, quantities are canonical.
The facts for that (`podschema/podschema.json`) are generated from those types by the small Go program beside the table;
here they are turned into one function per type.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, cast

import msgspec

from flotilla_common.api import quantity
from flotilla_common.api.documents import Json, JsonValue
from flotilla_common.api.jsontext import TOO_DEEP, is_too_deep

Writer = Callable[[Any], JsonValue]
"""Turns a decoded value (None if absent) into the value that Go writes. Raises ValueError for a wrong type."""

Members = list[tuple[str, str, str]]
"""Members of a struct: name, flags (`o` omitempty, `z` omitzero, `p` pointer), kind (podschema/README.md)."""

_DECODER = msgspec.json.Decoder(float_hook=Decimal)


class _Kind(msgspec.Struct, frozen=True):
    """Go's treatment of members of one type."""

    write: Writer
    omit_empty: bool = True  # False for a struct without pointer: it is always written


class _Member(msgspec.Struct, frozen=True):
    """A JSON member of a struct."""

    name: str
    write: Writer
    omit_empty: bool
    omit_null: bool
    pointer: bool
    may_be_absent: bool  # it is left out of the result if absent


class Canonical:
    """The writers of a table of types."""

    def __init__(self, types: Mapping[str, Members]) -> None:
        """Create the writers; `types` holds the members of each struct, in Go's order."""
        self._types = types
        self._kinds = dict(_SCALARS)

    def write(self, type_name: str, document: bytes | msgspec.Raw) -> Json:
        """Return the document as Go writes a value of the type.

        Raises ValueError if it is neither a JSON object nor null, or a known member has the wrong type.
        """
        try:
            value = _DECODER.decode(document)
        except msgspec.DecodeError as error:
            raise ValueError(f"not JSON: {error}") from error
        except RecursionError as error:
            raise ValueError(TOO_DEEP) from error
        if is_too_deep(value):
            raise ValueError(TOO_DEEP)
        return cast("Json", self._kind(type_name).write(value))

    def _kind(self, name: str) -> _Kind:
        if name not in self._kinds:
            self._kinds[name] = self._new_kind(name)
        return self._kinds[name]

    def _new_kind(self, name: str) -> _Kind:
        if name.startswith("[]"):
            return _Kind(_list_writer(self._kind(name[2:]).write))
        if name.startswith("{}"):
            return _Kind(_map_writer(self._kind(name[2:]).write))
        return _Kind(self._struct_writer(name), omit_empty=False)

    def _struct_writer(self, name: str) -> Writer:
        members: list[_Member] = []

        def write(value: Any) -> JsonValue:
            if not members:  # filled at first use: types may contain themselves
                members.extend(self._member(*entry) for entry in self._types[name])
            source = _typed(value, dict, {})
            result: Json = {}
            for member in members:
                value = source.get(member.name)
                if value is not None or not member.may_be_absent:  # most members of a type are absent
                    _write_member(member, value, result)
            return result

        return write

    def _member(self, name: str, flags: str, kind_name: str) -> _Member:
        kind = self._kind(kind_name)
        pointer = "p" in flags
        # Newer types omit a zero creationTimestamp ("z"); the recipe is older and always has it as null.
        optional = "o" in flags and "z" not in flags
        omit_empty, omit_null = optional and not pointer and kind.omit_empty, optional and pointer
        return _Member(
            name=name,
            write=kind.write,
            omit_empty=omit_empty,
            omit_null=omit_null,
            pointer=pointer,
            may_be_absent=omit_empty or omit_null,
        )


def canonical_template(template: bytes | msgspec.Raw) -> Json:
    """Return the template as core/v1 types write it, the form that revisions hold and hash.

    Raises ValueError if it is neither a JSON object nor null, or a known member has the wrong type.
    """
    return canonical_object("PodTemplateSpec", template)


def canonical_object(type_name: str, document: bytes | msgspec.Raw) -> Json:
    """Return the canonical form of another type such as PersistentVolumeClaimSpec, in Go's order."""
    return _core().write(type_name, document)


@cache
def core_types() -> dict[str, Members]:
    """Return the table of struct types and their members."""
    source = files("flotilla_common.api").joinpath("podschema/podschema.json").read_bytes()
    return msgspec.json.decode(source, type=dict[str, Members])


@cache
def _core() -> Canonical:
    return Canonical(core_types())


def _write_member(member: _Member, value: Any, result: Json) -> None:
    if value is None and member.pointer:
        if not member.omit_null:
            result[member.name] = None
        return
    try:
        written = member.write(value)
    except ValueError as error:
        raise ValueError(f"{member.name}: {error}") from error
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
