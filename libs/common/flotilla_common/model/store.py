"""The objects of a cluster: documents, the tables that controllers plan from, which follow them, and the rules of
metadata that hold for all kinds.

A document is never changed in place: who holds one from before a write can compare.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from flotilla_common.api.documents import Json, mappings
from flotilla_common.api.meta import Object, group_of
from flotilla_common.api.resources import Resource
from flotilla_common.clock import ManualClock
from flotilla_common.kube.reflector import decode_head
from flotilla_common.mirror.intake import Intake
from flotilla_common.mirror.table import Indexer, Table

_SYSTEM = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
"""What no update changes."""

T = TypeVar("T", bound=Object)
Place = tuple[str, str]
"""Namespace and name."""

Listener = Callable[[Resource, Json | None, Json | None], None]
"""Hears (before, after) of every change; None is absence."""


class Objects:
    """All objects, by resource. Makes and feeds the tables of controllers (`TableSource`)."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self._stored: dict[Resource, dict[Place, Json]] = {}
        self._intakes: dict[str, list[Intake[Any]]] = {}
        self._listeners: list[Listener] = []
        self._version = 0

    def add(self, resource: Resource, kind: type[T], indexes: Mapping[str, Indexer[T]]) -> Table[T]:
        """Another table of the resource's objects; to be added before the first of them."""
        table = Table[T](indexes)
        self._intakes.setdefault(resource.id, []).append(Intake(resource, kind, table))
        return table

    def listen(self, listener: Listener) -> None:
        """Tell of every change from now on."""
        self._listeners.append(listener)

    def load(self, resource: Resource, objects: Iterable[bytes | msgspec.Raw]) -> None:
        """Take objects in as the apiserver shows them. Nobody is told."""
        stored = self._stored.setdefault(resource, {})
        for raw in objects:
            document = _whole(resource, msgspec.json.decode(raw))
            self._version = max(self._version, int(document["metadata"].get("resourceVersion") or 0))
            stored[place_of(document)] = document
            for intake in self._intakes.get(resource.id, ()):
                intake.take(raw)

    def get(self, resource: Resource, namespace: str, name: str) -> Json | None:
        """The object of that name, if there is one."""
        return self._stored.get(resource, {}).get((namespace, name))

    def all(self, resource: Resource) -> list[Json]:
        """All objects of the resource."""
        return list(self._stored.get(resource, {}).values())

    def referred(self, reference: Json, namespace: str) -> tuple[Resource, Json] | None:
        """Return the object that an owner reference in this namespace means, if it is known."""
        group, kind = group_of(str(reference.get("apiVersion", ""))), reference.get("kind")
        for resource in self._stored:
            if (resource.group, resource.kind) == (group, kind):
                document = self.get(resource, namespace if resource.namespaced else "", str(reference.get("name")))
                if document is not None and document["metadata"]["uid"] == reference.get("uid"):
                    return resource, document
        return None

    def everything(self) -> Iterable[tuple[Resource, Json]]:
        """All objects, with their resources."""
        return [(kind, document) for kind, stored in self._stored.items() for document in stored.values()]

    def put(self, resource: Resource, document: Json) -> Json:
        """Store a new version of the object. Returns it as it is now."""
        self._version += 1
        place = place_of(document)
        stored = self._stored.setdefault(resource, {})
        before = stored.get(place)
        metadata = document["metadata"] | {"resourceVersion": str(self._version)}
        after = stored[place] = _whole(resource, document | {"metadata": metadata})
        raw = msgspec.json.encode(after)
        for intake in self._intakes.get(resource.id, ()):
            intake.take(raw)
        self._tell(resource, before, after)
        return after

    def remove(self, resource: Resource, document: Json) -> None:
        """The object is gone."""
        del self._stored[resource][place_of(document)]
        self._version += 1
        head = decode_head(msgspec.json.encode(document)).metadata
        for intake in self._intakes.get(resource.id, ()):
            intake.drop(head)
        self._tell(resource, document, None)

    def _tell(self, resource: Resource, before: Json | None, after: Json | None) -> None:
        for listener in self._listeners:
            listener(resource, before, after)


def place_of(document: Json) -> Place:
    """Namespace and name of an object."""
    metadata = document["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _whole(resource: Resource, document: Json) -> Json:
    """Objects of a LIST do not say what they are. Who has written which field is not tracked."""
    metadata = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    return resource.type_meta | document | {"metadata": metadata}


def cleaned(metadata: Json) -> Json:
    """Return metadata as it is stored: no empty members, no managedFields (owners of fields are not tracked)."""
    return {key: value for key, value in metadata.items() if value not in ({}, [], "", None) and key != "managedFields"}


def kept(new: Json, old: Json) -> Json:
    """Return the metadata of an update with everything that updates cannot change."""
    changed = {key: value for key, value in cleaned(new).items() if key not in _SYSTEM}
    return changed | {key: old[key] for key in _SYSTEM if key in old}


def spec_of(document: Json) -> Json:
    """Return what an object asks for: whatever is neither metadata nor status."""
    return {key: value for key, value in document.items() if key not in ("metadata", "status")}


def owners_of(document: Json | None) -> list[Json]:
    """Return the owner references of an object."""
    return [] if document is None else mappings(document["metadata"].get("ownerReferences"))
