"""What pods remember of the SidecarSets that were injected into them (sidecarset.md §6.13).

Annotations hold a JSON map by the SidecarSet's name. A map of plain hashes, as very old pods have it, is read too.
"""

from collections.abc import Iterable, Mapping

import msgspec

from flotilla_common.api.jsontext import Reader
from flotilla_common.api.keys import SIDECAR_SET_HASH, SIDECAR_SET_INJECTED
from flotilla_common.api.meta import Model


class Record(Model, omit_defaults=False):
    """Which state of one SidecarSet a pod has."""

    update_timestamp: str = ""
    hash: str = ""
    sidecar_set_name: str = ""
    sidecar_list: list[str] | None = []
    controller_revision: str | msgspec.UnsetType = msgspec.UNSET


_read = Reader(dict[str, Record | str]).read


def records(value: str) -> dict[str, Record]:
    """The records in an annotation, by SidecarSet. Raises ValueError for one that cannot be read."""
    if not value:
        return {}
    try:
        found = _read(value)
    except ValueError as fault:
        raise ValueError(f"not a record of SidecarSets: {fault}") from fault
    return {name: _record(name, held) for name, held in found.items()}


def _record(name: str, held: Record | str) -> Record:
    return Record(hash=held, sidecar_set_name=name) if isinstance(held, str) else held


def written(held: Mapping[str, Record]) -> str:
    """The annotation's value."""
    return msgspec.json.encode(dict(sorted(held.items()))).decode()


def hash_of(annotations: Mapping[str, str], name: str, key: str = SIDECAR_SET_HASH) -> str:
    """The hash of that SidecarSet that a pod carries; empty if there is none, or none that can be read."""
    try:
        found = records(annotations.get(key, "")).get(name)
    except ValueError:
        return ""
    return "" if found is None else found.hash


def injected(annotations: Mapping[str, str]) -> list[str]:
    """The SidecarSets that a pod was injected with."""
    return [name for name in annotations.get(SIDECAR_SET_INJECTED, "").split(",") if name]


def injected_list(names: Iterable[str]) -> str:
    """The value of the annotation that lists them."""
    return ",".join(sorted(set(names)))
