"""Reads and writes the records of injected SidecarSets on pods (sidecarset.md §6.13).

Annotations hold a JSON map by the SidecarSet's name. A map of plain hashes, as on very old pods, is read too.
"""

from collections.abc import Iterable, Mapping

import msgspec

from flotilla_common.api.jsontext import Reader
from flotilla_common.api.keys import SIDECAR_SET_HASH, SIDECAR_SET_INJECTED
from flotilla_common.api.meta import Model


class Record(Model, omit_defaults=False):
    """The state of one SidecarSet in a pod."""

    update_timestamp: str = ""
    hash: str = ""
    sidecar_set_name: str = ""
    sidecar_list: list[str] | None = []
    controller_revision: str | msgspec.UnsetType = msgspec.UNSET


_read = Reader(dict[str, Record | str]).read


def records(value: str) -> dict[str, Record]:
    """Return the records in an annotation, by SidecarSet. Raises ValueError if it is unreadable."""
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
    """Return the annotation's value."""
    return msgspec.json.encode(dict(sorted(held.items()))).decode()


def hash_of(annotations: Mapping[str, str], name: str, key: str = SIDECAR_SET_HASH) -> str:
    """Return the pod's hash of that SidecarSet; empty if it is absent or unreadable."""
    try:
        found = records(annotations.get(key, "")).get(name)
    except ValueError:
        return ""
    return "" if found is None else found.hash


def injected(annotations: Mapping[str, str]) -> list[str]:
    """Return the names of the SidecarSets that were injected into a pod."""
    return [name for name in annotations.get(SIDECAR_SET_INJECTED, "").split(",") if name]


def injected_list(names: Iterable[str]) -> str:
    """Return the value of the annotation that lists them."""
    return ",".join(sorted(set(names)))
