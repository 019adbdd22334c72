"""JSON merge patch (RFC 7386) on documents that are never changed in place.

Parts of a document that a patch does not touch are shared between the old and the new version: comparing and encoding
versions stays cheap, and history keeps every version for the price of its differences.
"""

from typing import Any, cast

from flotilla_common.control.plan import Json


def merge(target: object, patch: object) -> Any:
    """Return the target with the merge patch applied."""
    if not isinstance(patch, dict):
        return patch
    result: Json = dict(cast("Json", target)) if isinstance(target, dict) else {}
    for key, value in cast("Json", patch).items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result
