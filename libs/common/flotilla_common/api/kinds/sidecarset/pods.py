"""Names, records and annotations of SidecarSets on pods (sidecarset.md §6.5, §6.10, §6.13).

The records are a JSON map by the SidecarSet's name. A map of plain hashes, as on very old pods, is read too.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from flotilla_common.api.documents import Json, is_object, member, text
from flotilla_common.api.jsontext import Reader
from flotilla_common.api.keys import SIDECAR_SET_HASH, SIDECAR_SET_INJECTED
from flotilla_common.api.kinds.sidecarset.types import HOT_UPGRADE, MERGE_PATCH_JSON, OVERWRITE, PatchPodMetadata
from flotilla_common.api.meta import Model


def is_hot(container: Json) -> bool:
    """Report whether the container is injected as two, one of which idles."""
    return member(container, "upgradeStrategy").get("upgradeType") == HOT_UPGRADE


def names_in_pods(container: Json) -> tuple[str, ...]:
    """Return the names that the container may have in a pod."""
    name = text(container.get("name"))
    return (name, f"{name}-1", f"{name}-2") if is_hot(container) else (name,)


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


_read_json = Reader(object).read


def patched_annotations(annotations: Mapping[str, str], entries: Iterable[PatchPodMetadata]) -> dict[str, str]:
    """Return the pod's annotations with the entries applied in order. Raises ValueError for unmergeable JSON."""
    result = dict(annotations)
    for entry in entries:
        for key, value in entry.annotations.items():
            if entry.patch_policy == MERGE_PATCH_JSON:
                result[key] = _merged(key, result.get(key, ""), value)
            elif entry.patch_policy == OVERWRITE or key not in result:
                result[key] = value
    return result


def _merged(key: str, held: str, patch: str) -> str:
    if not held:
        return patch
    try:
        before = _read_json(held)
        merged = _compact(_apply(before, _read_json(patch)))
    except ValueError as fault:
        raise ValueError(f"annotation {key} cannot be merged: {fault}") from fault
    return held if merged == _compact(before) else merged  # keep the text if nothing changed


def _compact(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _apply(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386)."""
    if not is_object(patch):
        return patch
    result: dict[str, Any] = dict(target) if is_object(target) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _apply(result.get(key), value)
    return result
