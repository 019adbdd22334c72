"""Custom resources, as their CustomResourceDefinition says: pruning, defaults, validation, status, scale."""

from typing import Any, cast

from flotilla_common.api.documents import member
from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import Json
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

    def prepare_update(self, new: Json, old: Json, subresource: str) -> Json:
        """Through /status only the status changes, and not a word of the metadata."""
        if subresource == "status":
            return {key: value for key, value in old.items() if key != "status"} | {
                key: value for key, value in new.items() if key == "status"
            }
        return super().prepare_update(new, old, subresource)

    def changes_generation(self, new: Json, old: Json) -> bool:
        """Whatever is neither metadata nor status counts."""
        return _wish(new) != _wish(old)


def _wish(document: Json) -> Json:
    return {key: value for key, value in document.items() if key not in ("metadata", "status")}


def at_path(document: Json, path: str) -> Any:
    """The member that a dotted path such as `.spec.replicas` names; None when absent."""
    value: Any = document
    for part in path.split(".")[1:]:
        value = cast("Json", value).get(part) if isinstance(value, dict) else None
    return value


def with_path(document: Json, path: str, value: Any) -> Json:
    """The document with another value at the dotted path."""
    head, _, rest = path.lstrip(".").partition(".")
    return document | {head: with_path(member(document, head), rest, value) if rest else value}
