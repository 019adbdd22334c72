"""Models the garbage collector: dependents follow their owners by the propagation policy of the deletion.

Background: an object whose owners have all gone is deleted. Foreground: the owner stays until its blocking dependents
are gone. Orphan: the references are removed first. An owner is the object with that uid; another object of the same
name is not an owner.
"""

from abc import ABC, abstractmethod
from enum import StrEnum

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.resources import Resource
from flotilla_common.model import writes
from flotilla_common.model.store import Objects, Place, owners_of, place_of
from flotilla_common.model.writes import FOREGROUND, ORPHAN

Object = tuple[Resource, Place]


class Do(StrEnum):
    """Actions that can be due."""

    ORPHAN = "orphan"
    LET_GO = "let go"
    DROP = "drop references"
    DELETE = "delete"


class Due(msgspec.Struct, frozen=True):
    """The action due for an object."""

    do: Do
    owners: list[Json] = []  # the remaining ones, for DROP
    policy: str = ""  # for DELETE


class Graph(ABC):
    """An index of dependents by owner."""

    def __init__(self) -> None:
        self._dependents: dict[str, dict[Object, None]] = {}

    @abstractmethod
    def owner(self, reference: Json, namespace: str) -> Object | None:
        """Return the object that a reference points to, or None if it does not exist."""

    def is_gone(self, reference: Json, namespace: str) -> bool:
        """Report whether the object that a reference points to certainly does not exist."""
        return self.owner(reference, namespace) is None

    @abstractmethod
    def document(self, this: Object) -> Json | None:
        """Return the object as it is stored."""

    def changed(self, this: Object, before: Json | None, after: Json | None) -> list[Object]:
        """Index a change of an object. Return the objects for which something may be due now."""
        held, owners, found = owners_of(before), owners_of(after), list[Object]()
        if held != owners:
            self._index(this, held, owners)
        if owners or _finalizing(after):
            found.append(this)
        if after is None or _finalizing(after):
            found += self.dependents(str((after or before or {})["metadata"]["uid"]))
        if after is None or "deletionTimestamp" in after["metadata"]:
            found += [owner for one in held or owners if (owner := self.owner(one, this[1][0])) is not None]
        return found

    def dependents(self, uid: str) -> list[Object]:
        """Return the objects that name this uid as an owner."""
        return list(self._dependents.get(uid, ()))

    def due(self, document: Json) -> Due | None:
        """Return what is due for the object as it is stored."""
        metadata = document["metadata"]
        finalizers = metadata.get("finalizers", ())
        if "deletionTimestamp" in metadata:
            if ORPHAN in finalizers:
                return Due(Do.ORPHAN)
            return Due(Do.LET_GO) if FOREGROUND in finalizers and not self._is_blocked(metadata["uid"]) else None
        owners, namespace = owners_of(document), metadata.get("namespace", "")
        leaving = [one for one in owners if self._is_leaving(one, namespace)]
        solid = [one for one in owners if one not in leaving and not self.is_gone(one, namespace)]
        if len(solid) == len(owners):
            return None
        if solid:
            return Due(Do.DROP, owners=solid)
        return Due(Do.DELETE, policy="Foreground" if leaving and self._is_blocked(metadata["uid"]) else "Background")

    def _index(self, this: Object, before: list[Json], after: list[Json]) -> None:
        for reference in before:
            self._dependents.get(str(reference["uid"]), {}).pop(this, None)
        for reference in after:
            self._dependents.setdefault(str(reference["uid"]), {})[this] = None

    def _is_leaving(self, reference: Json, namespace: str) -> bool:
        """Report whether the owner waits for its dependents to go."""
        found = self.owner(reference, namespace)
        document = None if found is None else self.document(found)
        return document is not None and _finalizing(document) and FOREGROUND in document["metadata"]["finalizers"]

    def _is_blocked(self, uid: str) -> bool:
        """Report whether dependents block a foreground deletion."""
        owners = [one for found in self.dependents(uid) for one in owners_of(self.document(found))]
        return any(one["uid"] == uid and one.get("blockOwnerDeletion") for one in owners)


def _finalizing(document: Json | None) -> bool:
    """Report whether the collector has to act before the object goes."""
    if document is None or "deletionTimestamp" not in document["metadata"]:
        return False
    return not {ORPHAN, FOREGROUND}.isdisjoint(document["metadata"].get("finalizers", ()))


class Garbage(Graph):
    """A collector. Owners that were not seen to go are taken to exist, as not all kinds are loaded."""

    def __init__(self, objects: Objects) -> None:
        super().__init__()
        self._objects = objects
        self._is_complete = False
        self._gone: set[str] = set()
        self._due: dict[Object, None] = {}
        objects.listen(self._see)

    def step(self) -> bool:
        """Do what is due."""
        due, self._due = self._due, {}
        moved = [self._collect(*one) for one in due]
        return any(moved)

    def owner(self, reference: Json, namespace: str) -> Object | None:
        found = self._objects.referred(reference, namespace)
        return None if found is None else (found[0], place_of(found[1]))

    def is_gone(self, reference: Json, namespace: str) -> bool:
        return reference["uid"] in self._gone

    def document(self, this: Object) -> Json | None:
        return self._objects.get(this[0], *this[1])

    def _see(self, resource: Resource, before: Json | None, after: Json | None) -> None:
        """Index all objects when the first one goes, and keep the index up to date from then on."""
        if not self._is_complete:
            if after is not None and "deletionTimestamp" not in after["metadata"]:
                return
            self._is_complete = True
            for kind, document in self._objects.everything():
                self.changed((kind, place_of(document)), None, document)
        if after is None and before is not None:
            self._gone.add(before["metadata"]["uid"])
        self._due |= dict.fromkeys(self.changed((resource, place_of(after or before or {})), before, after))

    def _collect(self, resource: Resource, place: Place) -> bool:
        document = self._objects.get(resource, *place)
        due = None if document is None else self.due(document)
        if document is None or due is None:
            return False
        match due.do:
            case Do.DELETE:
                writes.delete(self._objects, resource, document, {"propagationPolicy": due.policy})
            case Do.DROP:
                self._change(resource, document, ownerReferences=due.owners)
            case Do.ORPHAN | Do.LET_GO:
                uid = document["metadata"]["uid"]
                for kind, other in self.dependents(uid) if due.do is Do.ORPHAN else ():
                    if (dependent := self._objects.get(kind, *other)) is not None:
                        kept = [one for one in owners_of(dependent) if one["uid"] != uid]
                        self._change(kind, dependent, ownerReferences=kept)
                rest = [one for one in document["metadata"]["finalizers"] if one not in (ORPHAN, FOREGROUND)]
                self._change(resource, document, finalizers=rest)
        return True

    def _change(self, resource: Resource, document: Json, **metadata: object) -> None:
        after = document | {"metadata": document["metadata"] | metadata}
        writes.store(self._objects, resource, document, after)
