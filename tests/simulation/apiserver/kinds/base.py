"""The rules that all kinds share, and the points where a kind may differ."""

from collections.abc import Collection
from typing import Any, cast

from flotilla_common.api import documents, strategic
from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import Json
from flotilla_common.model.store import spec_of
from flotilla_common.model.writes import Rules
from tests.simulation.apiserver import json_patch
from tests.simulation.apiserver.errors import FieldFault, unsupported_patch

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
_APPLY = "application/apply-patch+yaml"  # named, as by the real one, but not understood here


class Kind(Rules):
    """A kind with a spec, a status subresource, and nothing special."""

    generations = False
    """Changes of the spec raise metadata.generation."""
    has_status = True
    """The status is written through /status only."""
    subresources: frozenset[str] = frozenset({"status"})
    fields: Collection[str] = ("metadata.name", "metadata.namespace")
    """Fields that field selectors may name."""
    unconditional_update = True
    """A PUT may come without a resourceVersion."""
    create_on_update = False
    """A PUT of what does not exist creates it."""
    returns_deleted = False
    """A delete answers with the last state of the object instead of a Status."""
    typed = True
    """A built-in kind: strategic patches, nulls and unknown fields vanish, items of a LIST do not say their kind."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.where = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        """The resource as messages name it."""
        self.prefix = f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()
        """The prefix of the JSON of every stored object."""

    def decode(self, document: Json, old: Json | None) -> Json:
        """Decode a document as the apiserver reads it: with known members and their defaults.

        Members shared with `old` have been read before.
        """
        return document

    def prepare_create(self, document: Json) -> Json:
        """Prepare a new object before admission: it has no status yet."""
        if self.has_status and "status" in document:
            document = {key: value for key, value in document.items() if key != "status"}
        return document

    def prepare_update(self, new: Json, old: Json, subresource: str) -> Json:
        """Return `old` with the parts of `new` that a write to this endpoint may change."""
        if subresource == "status":
            return _with_member(new, "spec", old)
        return _with_member(new, "status", old) if self.has_status else new

    def changes_generation(self, new: Json, old: Json) -> bool:
        """Report whether the update changes the spec."""
        return self.generations and spec_of(new) != spec_of(old)

    def validate(self, document: Json, old: Json | None, subresource: str) -> list[FieldFault]:
        """Return the faults of the object beyond its metadata."""
        return []

    def patched(self, document: Json, patch: Any, content_type: str) -> Json:
        """Apply a patch to the document. Raises PatchError, ApiError 415."""
        if content_type == MERGE:
            return documents.merge(document, patch)
        if content_type == JSON_PATCH:
            return json_patch.apply_operations(document, cast("list[Json]", patch))
        if content_type == STRATEGIC and self.typed:
            return strategic.merge(document, patch)
        raise unsupported_patch(content_type, [JSON_PATCH, MERGE, *([STRATEGIC] if self.typed else []), _APPLY])


def without_nulls(value: Any) -> Any:
    """Return the value without null members, as typed decoding does."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in cast("Json", value).items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in cast("list[Any]", value)]
    return value


def _with_member(new: Json, name: str, old: Json) -> Json:
    if new.get(name) is old.get(name) and (name in new) == (name in old):
        return new
    result = dict(new)
    if name in old:
        result[name] = old[name]
    else:
        result.pop(name, None)
    return result
