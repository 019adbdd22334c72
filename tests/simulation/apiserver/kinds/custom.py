"""Custom resources, as their CustomResourceDefinition says: pruning, defaults, validation, status, scale."""

from typing import Any, cast

from flotilla_common.api.documents import member
from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import Json
from tests.simulation.apiserver.errors import FieldFault
from tests.simulation.apiserver.kinds import structural
from tests.simulation.apiserver.kinds.base import Kind


class CustomKind(Kind):
    """One kind of one definition, in its storage version."""

    generations = True
    unconditional_update = False
    typed = False

    def __init__(self, resource: Resource, version: Json) -> None:
        super().__init__(resource)
        subresources = member(version, "subresources")
        self.subresources = frozenset(subresources)
        self.has_status = "status" in subresources
        self.scale_paths: Json = member(subresources, "scale")
        self._schema = member(version, "schema", "openAPIV3Schema")
        self._parts = member(self._schema, "properties")

    def decode(self, document: Json, old: Json | None) -> Json:
        result: Json = {}
        for key, value in document.items():
            known = key in ("apiVersion", "kind", "metadata") or (old is not None and value is old.get(key))
            if known:
                result[key] = value
            elif key in self._parts:
                result[key] = structural.shaped(value, self._parts[key])
        return result

    def validate(self, document: Json, old: Json | None, subresource: str) -> list[FieldFault]:
        """Validate the members that the update touches; the others have been validated before."""
        found: list[FieldFault] = []
        for key, value in document.items():
            if key in self._parts and key != "metadata" and (old is None or value is not old.get(key)):
                found += structural.faults(value, self._parts[key], key)
        return found

    def prepare_update(self, new: Json, old: Json, subresource: str) -> Json:
        """Through /status only the status changes, and not a word of the metadata."""
        if subresource == "status":
            return {key: value for key, value in old.items() if key != "status"} | {
                key: value for key, value in new.items() if key == "status"
            }
        return super().prepare_update(new, old, subresource)


def at_path(document: Json, path: str) -> Any:
    """Return the member at a dotted path such as `.spec.replicas`; None when absent."""
    value: Any = document
    for part in path.split(".")[1:]:
        value = cast("Json", value).get(part) if isinstance(value, dict) else None
    return value


def with_path(document: Json, path: str, value: Any) -> Json:
    """Return the document with another value at the dotted path."""
    head, _, rest = path.lstrip(".").partition(".")
    return document | {head: with_path(member(document, head), rest, value) if rest else value}
