"""What an apply changes on the object itself, field by field. Values that may be secret are not shown."""

import msgspec

from flotilla_cli.foresee.dryrun import LAST_APPLIED
from flotilla_cli.secret_fields import MAPPINGS, PAIRS, TEXTS
from flotilla_common.api.differences import Path, differences, path_text, value_at
from flotilla_common.api.documents import Json, JsonValue, is_object, mapping, strings

_HIDDEN = TEXTS | MAPPINGS | {"data", "stringData", "binaryData", "annotations"}
"""Members whose values may be secret, wherever they stand."""


class FieldChange(msgspec.Struct, frozen=True, omit_defaults=True, rename={"before": "from", "after": "to"}):
    """One field: absent before or afterwards is None, and so is what is not shown."""

    path: str
    before: JsonValue = None
    after: JsonValue = None
    hidden: bool = False


def changes_of(before: Json, after: Json, secret_fields: frozenset[str] = frozenset()) -> tuple[FieldChange, ...]:
    """Return the differences of spec, labels and annotations, in order. `secret_fields`: what else the kind hides."""
    hidden = _HIDDEN | secret_fields
    return tuple(
        _field(one.path, before, after, hidden)
        for one in differences(_shown(before), _shown(after))
        if one.path != ("metadata",)
    )


def _shown(document: Json) -> Json:
    """The object without what the apiserver and `kubectl apply` write for themselves."""
    metadata = mapping(document.get("metadata"))
    annotations = strings(metadata.get("annotations"))
    annotations = {key: value for key, value in annotations.items() if not _is_bookkeeping(key)}
    parts: Json = {"labels": strings(metadata.get("labels")), "annotations": annotations}
    return {"metadata": parts, "spec": mapping(document.get("spec"))}


def _is_bookkeeping(annotation: str) -> bool:
    return annotation == LAST_APPLIED or annotation.startswith("kruise.io/sidecarset-hash")


def _field(path: Path, before: Json, after: Json, hidden: frozenset[str]) -> FieldChange:
    text = path_text(path, after if value_at(after, path) is not None else before)
    if any(part in hidden or (part in PAIRS and path[-1] != "name") for part in path):
        return FieldChange(text, hidden=True)
    return FieldChange(text, _plain(value_at(before, path), hidden), _plain(value_at(after, path), hidden))


def _plain(value: JsonValue, hidden: frozenset[str]) -> JsonValue:
    """The value without what may be secret inside of it."""
    if is_object(value):
        return {key: "…" if key in hidden or key in PAIRS else _plain(item, hidden) for key, item in value.items()}
    return [_plain(item, hidden) for item in value] if isinstance(value, list) else value
