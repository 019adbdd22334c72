"""What `kubectl apply` sends for a kind that a CRD defines: a JSON merge patch, made of three documents.

What the manifest says and the object does not is set. What an earlier apply had set, as an annotation remembers, and
the manifest says no longer, is taken away. Everything else, such as defaults and what others have written, stays.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from flotilla_common.api.documents import Json, is_object, mapping, merge_patch, strings
from flotilla_common.api.gojson import go_json

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation: the manifest of the last apply."""


def annotated(document: Json) -> Json:
    """The manifest with itself in its annotation, as it is written."""
    metadata = mapping(document.get("metadata"))
    annotations = {key: value for key, value in strings(metadata.get("annotations")).items() if key != LAST_APPLIED}
    bare = document | {"metadata": metadata | {"annotations": annotations}}
    applied = go_json(bare, sort=True).decode() + "\n"
    return bare | {"metadata": metadata | {"annotations": annotations | {LAST_APPLIED: applied}}}


def last_applied(live: Json) -> Json:
    """The manifest of the last apply; empty for an object that was made otherwise."""
    found = strings(mapping(live.get("metadata")).get("annotations")).get(LAST_APPLIED, "")
    try:
        return mapping(msgspec.json.decode(found)) if found else {}
    except msgspec.DecodeError:
        return {}


def three_way(original: Json, modified: Json, live: Json) -> Json:
    """The patch. `original`: what was applied last, `modified`: what is applied now. Empty: nothing changes."""
    added = _filtered(merge_patch(live, modified), keep=lambda value: value is not None)
    removed = _filtered(merge_patch(original, modified), keep=lambda value: value is None)
    return _merged(removed, added)


def _filtered(patch: Json, keep: Callable[[Any], bool]) -> Json:
    """The members whose values are to be kept, and the way to them. An empty object is a value like others."""
    result: Json = {}
    for key, value in patch.items():
        if is_object(value) and value:
            if inner := _filtered(value, keep):
                result[key] = inner
        elif keep(value):
            result[key] = value
    return result


def _merged(first: Json, second: Json) -> Json:
    """Both patches in one; the second has the last word."""
    result = dict(first)
    for key, value in second.items():
        held = result.get(key)
        result[key] = _merged(held, value) if is_object(held) and is_object(value) else value
    return result
