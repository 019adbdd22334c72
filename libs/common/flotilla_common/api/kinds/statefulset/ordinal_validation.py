"""Validation of a StatefulSet's ordinals: where they start, and which are reserved (statefulset.md §3.2)."""

from collections.abc import Iterator

from flotilla_common.api.admission.fields import NON_NEGATIVE, Fault, invalid
from flotilla_common.api.documents import Json, member, sequence
from flotilla_common.api.meta import IntOrString
from flotilla_common.api.ordinals import interval, is_range


def ordinal_faults(spec: Json) -> Iterator[Fault]:
    """The faults of spec.reserveOrdinals and spec.ordinals."""
    for index, item in enumerate(sequence(spec.get("reserveOrdinals"))):
        yield from (invalid("spec", item, detail) for detail in _problems(index, item))
    start = member(spec, "ordinals").get("start") or 0
    if start < 0:
        yield invalid("spec.ordinals.start", start, NON_NEGATIVE)


def _problems(index: int, item: IntOrString) -> Iterator[str]:
    if isinstance(item, int):
        if item < 0:
            yield f"{index} th reserve ordinal is negative: {item}"
        return
    if not is_range(item):
        yield f"{index} th reserve ordinal is not a valid range: {item}"
    try:
        interval(item)
    except ValueError as error:
        yield f"{index} th reserve ordinal is invalid: {item}, err = {error}"
