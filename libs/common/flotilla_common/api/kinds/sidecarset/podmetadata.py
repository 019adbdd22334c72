"""Annotations that a SidecarSet puts on pods (sidecarset.md §6.5)."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from flotilla_common.api.documents import is_object
from flotilla_common.api.jsontext import Reader
from flotilla_common.api.kinds.sidecarset.types import MERGE_PATCH_JSON, OVERWRITE, PatchPodMetadata

_read = Reader(object).read


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
        before = _read(held)
        merged = _compact(_apply(before, _read(patch)))
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
