"""Stores the objects of a cluster: documents, the tables that controllers plan from, and common metadata rules.

A document is never changed in place, so that a caller can compare it with a later version.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from flotilla_common.api.documents import Json, mappings
from flotilla_common.api.meta import Object, group_of
from flotilla_common.api.resources import Resource
from flotilla_common.clock import ManualClock
from flotilla_common.kube.reflector import decode_head
from flotilla_common.mirror.decoder import ObjectDecoder
from flotilla_common.mirror.table import Indexer, Table

_SYSTEM = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
"""Metadata that no update changes."""

T = TypeVar("T", bound=Object)
Place = tuple[str, str]
"""Namespace and name."""

Listener = Callable[[Resource, Json | None, Json | None], None]
"""Receives (before, after) of every change; None is absence."""


class Objects:
    """All objects, by resource. Creates and feeds the tables of controllers (`TableSource`)."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self._stored: dict[Resource, dict[Place, Json]] = {}
        self._decoders: dict[str, list[ObjectDecoder[Any]]] = {}
        self._listeners: list[Listener] = []
        self._version = 0

    def add(self, resource: Resource, kind: type[T], indexes: Mapping[str, Indexer[T]]) -> Table[T]:
        """Add a table of the resource's objects; must be called before the first object is stored."""
        table = Table[T](indexes)
        self._decoders.setdefault(resource.id, []).append(ObjectDecoder(resource, kind, table))
        return table

    def listen(self, listener: Listener) -> None:
        """Call the listener on every change from now on."""
        self._listeners.append(listener)

    def load(self, resource: Resource, objects: Iterable[bytes | msgspec.Raw]) -> None:
        """Store objects as the apiserver returned them, without calling listeners."""
        stored = self._stored.setdefault(resource, {})
        for raw in objects:
            document = _whole(resource, msgspec.json.decode(raw))
            self._version = max(self._version, int(document["metadata"].get("resourceVersion") or 0))
            stored[place_of(document)] = document
            for decoder in self._decoders.get(resource.id, ()):
                decoder.take(raw)

    def get(self, resource: Resource, namespace: str, name: str) -> Json | None:
        """Return the object of that name, or None."""
        return self._stored.get(resource, {}).get((namespace, name))

    def all(self, resource: Resource) -> list[Json]:
        """Return all objects of the resource."""
        return list(self._stored.get(resource, {}).values())

    def referred(self, reference: Json, namespace: str) -> tuple[Resource, Json] | None:
        """Return the object that an owner reference in this namespace points to, or None if it is not stored."""
        group, kind = group_of(str(reference.get("apiVersion", ""))), reference.get("kind")
        for resource in self._stored:
            if (resource.group, resource.kind) == (group, kind):
                document = self.get(resource, namespace if resource.namespaced else "", str(reference.get("name")))
                if document is not None and document["metadata"]["uid"] == reference.get("uid"):
                    return resource, document
        return None

    def everything(self) -> Iterable[tuple[Resource, Json]]:
        """Return all objects, with their resources."""
        return [(kind, document) for kind, stored in self._stored.items() for document in stored.values()]

    def put(self, resource: Resource, document: Json) -> Json:
        """Store a new version of the object, and return it."""
        self._version += 1
        place = place_of(document)
        stored = self._stored.setdefault(resource, {})
        before = stored.get(place)
        metadata = document["metadata"] | {"resourceVersion": str(self._version)}
        after = stored[place] = _whole(resource, document | {"metadata": metadata})
        raw = msgspec.json.encode(after)
        for decoder in self._decoders.get(resource.id, ()):
            decoder.take(raw)
        self._notify(resource, before, after)
        return after

    def remove(self, resource: Resource, document: Json) -> None:
        """Remove the object."""
        del self._stored[resource][place_of(document)]
        self._version += 1
        head = decode_head(msgspec.json.encode(document)).metadata
        for decoder in self._decoders.get(resource.id, ()):
            decoder.drop(head)
        self._notify(resource, document, None)

    def _notify(self, resource: Resource, before: Json | None, after: Json | None) -> None:
        for listener in self._listeners:
            listener(resource, before, after)


def place_of(document: Json) -> Place:
    """Return namespace and name of an object."""
    metadata = document["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _whole(resource: Resource, document: Json) -> Json:
    """Return the object with its type, which items of a LIST lack, and without managedFields."""
    metadata = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    return resource.type_meta | document | {"metadata": metadata}


def cleaned(metadata: Json) -> Json:
    """Return metadata as it is stored: without empty members and managedFields (field owners are not tracked)."""
    return {key: value for key, value in metadata.items() if value not in ({}, [], "", None) and key != "managedFields"}


def kept(new: Json, old: Json) -> Json:
    """Return the metadata of an update, with members that updates cannot change restored."""
    changed = {key: value for key, value in cleaned(new).items() if key not in _SYSTEM}
    return changed | {key: old[key] for key in _SYSTEM if key in old}


def spec_of(document: Json) -> Json:
    """Return the object without metadata and status."""
    return {key: value for key, value in document.items() if key not in ("metadata", "status")}


def owners_of(document: Json | None) -> list[Json]:
    """Return the owner references of an object."""
    return [] if document is None else mappings(document["metadata"].get("ownerReferences"))
