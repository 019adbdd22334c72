"""Field errors, in Kubernetes' words and order, as kubectl users know them.

`spec.replicas: Invalid value: -1: must be greater than or equal to 0`; several are joined to `[a, b]`, each text once.
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from flotilla_common.api.documents import JsonValue

NON_NEGATIVE = "must be greater than or equal to 0"
"""The detail of every refused negative number."""


class Kind(StrEnum):
    """What is wrong with a field; the value is what people read."""

    REQUIRED = "Required value"
    INVALID = "Invalid value"
    FORBIDDEN = "Forbidden"
    NOT_SUPPORTED = "Unsupported value"
    DUPLICATE = "Duplicate value"
    TOO_LONG = "Too long"


_WITHOUT_VALUE = frozenset({Kind.REQUIRED, Kind.FORBIDDEN, Kind.TOO_LONG})


class FieldError(msgspec.Struct, frozen=True):
    """One fault of one field. `value` is shown for the kinds that name the offending value."""

    path: str
    kind: Kind
    detail: str = ""
    value: JsonValue = None

    @property
    def body(self) -> str:
        """The text after the path."""
        shown = self.kind.value if self.kind in _WITHOUT_VALUE else f"{self.kind.value}: {_show(self.value)}"
        return f"{shown}: {self.detail}" if self.detail else shown

    def __str__(self) -> str:
        return f"{self.path}: {self.body}"


class ForeignError(msgspec.Struct, frozen=True):
    """A fault that the apiserver found and worded; only the path is ours."""

    path: str
    body: str

    def __str__(self) -> str:
        return f"{self.path}: {self.body}"


Fault = FieldError | ForeignError


def required(path: str, detail: str = "") -> FieldError:
    """The field must be there."""
    return FieldError(path, Kind.REQUIRED, detail)


def invalid(path: str, value: JsonValue, detail: str) -> FieldError:
    """The value cannot be."""
    return FieldError(path, Kind.INVALID, detail, value)


def forbidden(path: str, detail: str) -> FieldError:
    """The field, or its change, is not allowed."""
    return FieldError(path, Kind.FORBIDDEN, detail)


def not_supported(path: str, value: JsonValue, supported: Iterable[str]) -> FieldError:
    """The value is none of the known ones."""
    names = ", ".join(_show(name) for name in supported)
    return FieldError(path, Kind.NOT_SUPPORTED, f"supported values: {names}", value)


def aggregate(faults: Iterable[Fault]) -> str:
    """All faults as one message; each text once, brackets only around several."""
    texts = list(dict.fromkeys(str(fault) for fault in faults))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _show(value: JsonValue) -> str:
    if value is None:
        return '"null"'  # Kubernetes prints an absent value as this string
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return msgspec.json.encode(value).decode()
