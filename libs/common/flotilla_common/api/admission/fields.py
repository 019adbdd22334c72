"""Field errors in Kubernetes' words and order, as kubectl users expect them.

`spec.replicas: Invalid value: -1: must be greater than or equal to 0`; several are joined to `[a, b]`, each text once.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate

import msgspec

from flotilla_common.api.documents import JsonValue

LONGEST_LABEL = 63
"""The most characters of a DNS label, and of a label's value."""

_TOO_LONG = f"must be no more than {LONGEST_LABEL} characters"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_NO_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
    "end with an alphanumeric character"
)
_JOB = re.compile(r"[a-zA-Z0-9-]+")

NON_NEGATIVE = "must be greater than or equal to 0"
"""The detail of every refused negative number."""


LONGEST_VALUE = 500
"""The most characters of a value that are shown."""

LONGEST_MESSAGE = 8192
"""The most characters of all faults together; the first ones suffice."""


class Fault(msgspec.Struct, frozen=True):
    """One fault of one field. `body` is the text after the path, written here or by the apiserver."""

    path: str
    body: str

    def __str__(self) -> str:
        return f"{self.path}: {self.body}"


def required(path: str, detail: str = "") -> Fault:
    """Return the fault of a missing field."""
    return Fault(path, f"Required value: {detail}" if detail else "Required value")


def invalid(path: str, value: JsonValue, detail: str) -> Fault:
    """Return the fault of an invalid value."""
    return Fault(path, f"Invalid value: {_show(value)}: {detail}")


def forbidden(path: str, detail: str) -> Fault:
    """Return the fault of a field, or a change of it, that is not allowed."""
    return Fault(path, f"Forbidden: {detail}")


def not_supported(path: str, value: JsonValue, supported: Iterable[str]) -> Fault:
    """Return the fault of a value that is not in a fixed list."""
    names = ", ".join(_show(name) for name in supported)
    return Fault(path, f"Unsupported value: {_show(value)}: supported values: {names}")


def duplicate(path: str, value: JsonValue) -> Fault:
    """Return the fault of a value that occurs twice."""
    return Fault(path, f"Duplicate value: {_show(value)}")


def aggregate(faults: Iterable[Fault]) -> str:
    """Join all faults to one message; each text once, brackets only around several."""
    texts = list(dict.fromkeys(_cut(str(fault), LONGEST_MESSAGE) for fault in faults))
    lengths = accumulate(len(text) for text in texts)
    shown = texts[: max(sum(length <= LONGEST_MESSAGE for length in lengths), 1)]
    more = [f"and {len(texts) - len(shown)} more"] if len(shown) < len(texts) else []
    return texts[0] if len(texts) == 1 else f"[{', '.join(shown + more)}]"


def _show(value: JsonValue) -> str:
    if value is None:
        return '"null"'  # Kubernetes prints an absent value as this string
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return _cut(msgspec.json.encode(value).decode(), LONGEST_VALUE)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"


def label_faults(path: str, name: str) -> Iterator[Fault]:
    """Yield faults unless the name is a DNS label."""
    if len(name) > LONGEST_LABEL:
        yield invalid(path, name, _TOO_LONG)
    if not _LABEL.fullmatch(name):
        yield invalid(path, name, _NO_LABEL)


def job_name_faults(name: str) -> Iterator[Fault]:
    """Yield faults unless the name fits for a job: pods have it as a label, and as a prefix of their names."""
    if not _JOB.fullmatch(name):
        yield invalid("metadata.name", name, "must consist of alphanumeric characters or '-'")
    if len(name) > LONGEST_LABEL:
        yield invalid("metadata.name", name, _TOO_LONG)
