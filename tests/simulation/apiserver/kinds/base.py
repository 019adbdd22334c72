"""The rules that all kinds share, and the points where a kind may differ."""

from collections.abc import Sequence
from typing import Any, cast

from flotilla_common.api.documents import mapping, mappings
from flotilla_common.api.resources import Resource
from flotilla_common.api.selectors import key_problem, value_problem
from flotilla_common.control.plan import Json
from tests.simulation.apiserver import patches, strategic
from tests.simulation.apiserver.errors import FieldFault, forbidden_value, invalid_value, unsupported_patch

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

_SYSTEM = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName")
"""Metadata that no update changes."""


class Kind:
    """A kind with a spec, a status subresource, and nothing special."""

    generations = False
    """Changes of the spec raise metadata.generation."""
    has_status = True
    """The status is written through /status only."""
    subresources: frozenset[str] = frozenset({"status"})
    unconditional_update = True
    """A PUT may come without a resourceVersion."""
    create_on_update = False
    """A PUT of what does not exist creates it."""
    returns_deleted = False
    """A delete answers with the last state of the object instead of a Status."""
    graceful = False
    """Deletion is always marked first, even when nothing is waited for."""
    typed = True
    """A built-in kind: strategic patches, nulls and unknown fields vanish, items of a LIST do not say their kind."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.where = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        """The resource as messages name it."""
        self.prefix = f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()
        """How the JSON of every stored object begins."""

    def decode(self, document: Json, old: Json | None) -> Json:
        """The document as the apiserver reads it: with the members that it knows and their defaults. What is shared
        with `old` has been read before."""
        return document

    def prepare_create(self, document: Json) -> Json:
        """A new object before admission is done with it: the status is nobody's yet."""
        if self.has_status and "status" in document:
            document = {key: value for key, value in document.items() if key != "status"}
        return document

    def prepare_update(self, new: Json, old: Json, subresource: str) -> Json:
        """The parts of `new` that a write to this endpoint may change; the rest is as in `old`."""
        if subresource == "status":
            return _with_member(new, "spec", old)
        return _with_member(new, "status", old) if self.has_status else new

    def changes_generation(self, new: Json, old: Json) -> bool:
        """The update asks for something else than before."""
        return self.generations and new.get("spec") != old.get("spec")

    def validate(self, document: Json, old: Json | None, subresource: str) -> list[FieldFault]:
        """What is wrong with the object beyond its metadata."""
        return []

    def held(self, document: Json) -> bool:
        """Something else than metadata.finalizers keeps an object that is being deleted."""
        return False

    def terminating(self, document: Json) -> Json:
        """An object whose deletion has just begun."""
        return document

    def grace(self, document: Json, wanted: int | None) -> int:
        """Seconds between the deletion and the end of the object."""
        return 0

    def patched(self, document: Json, patch: Any, content_type: str) -> Json:
        """The document with a patch applied. Raises PatchError, ApiError 415."""
        if content_type == MERGE:
            return patches.merge(document, patch)
        if content_type == JSON_PATCH:
            return patches.apply_operations(document, cast("list[Json]", patch))
        if content_type == STRATEGIC and self.typed:
            return strategic.merge(document, patch)
        raise unsupported_patch(content_type, [JSON_PATCH, MERGE, *([STRATEGIC] if self.typed else [])])


def without_nulls(value: Any) -> Any:
    """The value without members that are null, which is what typed decoding makes of them."""
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


def clean_metadata(metadata: Json) -> Json:
    """Metadata as it is stored: no empty members, no managedFields (the fake does not track field owners)."""
    return {key: value for key, value in metadata.items() if value not in ({}, [], "", None) and key != "managedFields"}


def kept_metadata(new: Json, old: Json) -> Json:
    """The metadata of an update with everything that updates cannot change."""
    result = clean_metadata(new)
    for key in _SYSTEM:
        if key in old:
            result[key] = old[key]
        else:
            result.pop(key, None)
    return result


def metadata_faults(metadata: Json, old: Json | None) -> list[FieldFault]:
    """What is wrong with an object's metadata."""
    before: Json = old or {}
    faults: list[FieldFault] = []
    if metadata.get("ownerReferences") is not before.get("ownerReferences"):
        faults += _owner_faults(mappings(metadata.get("ownerReferences")))
    if metadata.get("labels") is not before.get("labels"):
        faults += _label_faults(mapping(metadata.get("labels")))
    if old is not None and "deletionTimestamp" in old:
        present: Sequence[str] = old.get("finalizers", ())
        fresh = [name for name in metadata.get("finalizers", ()) if name not in present]
        if fresh:
            told = "[]string{" + ", ".join(f'"{name}"' for name in sorted(fresh)) + "}"
            why = f"no new finalizers can be added if the object is being deleted, found new finalizers {told}"
            faults.append(forbidden_value("metadata.finalizers", why))
    return faults


def _owner_faults(owners: list[Json]) -> list[FieldFault]:
    faults: list[FieldFault] = []
    controllers = [owner for owner in owners if owner.get("controller") is True]
    if len(controllers) > 1:
        why = 'Only one reference can have Controller set to true. Found "true" in references for '
        why += " and ".join(f"{owner.get('kind')}/{owner.get('name')}" for owner in controllers[:2])
        faults.append(invalid_value("metadata.ownerReferences", owners, why))
    for owner in owners:
        empty = [name for name in ("apiVersion", "kind", "name", "uid") if not owner.get(name)]
        faults += [invalid_value(f"metadata.ownerReferences.{name}", "", "must not be empty") for name in empty]
    return faults


def _label_faults(labels: Json) -> list[FieldFault]:
    faults: list[FieldFault] = []
    for key, value in labels.items():
        if problem := key_problem(key):
            faults.append(invalid_value("metadata.labels", key, problem))
        if problem := value_problem(value):
            faults.append(invalid_value("metadata.labels", value, problem))
    return faults
