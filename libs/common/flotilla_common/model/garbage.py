"""The garbage collector: dependents go with their owners."""

from flotilla_common.api.documents import Json, mappings
from flotilla_common.api.resources import Resource
from flotilla_common.model.store import Objects, Place, place_of

Dependent = tuple[Resource, Place]


class Garbage:
    """The garbage collector: what has only owners that are gone goes, too."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._dependents: dict[str, dict[Dependent, None]] | None = None  # by the uids of their owners
        self._gone: list[str] = []
        objects.listen(self._see)

    def step(self) -> bool:
        """Collect the dependents of what has gone since."""
        gone, self._gone = self._gone, []
        found = [one for uid in gone for one in self._by_owner().get(uid, ())]
        collected = [one for one in found if self._collect(*one)]
        return bool(collected)

    def _by_owner(self) -> dict[str, dict[Dependent, None]]:
        """Who depends on whom; made when it is first needed, and kept up to date from then on."""
        if self._dependents is None:
            self._dependents = {}
            for resource, document in self._objects.everything():
                self._file(resource, document, self._dependents)
        return self._dependents

    def _file(self, resource: Resource, document: Json, into: dict[str, dict[Dependent, None]]) -> None:
        for owner in mappings(document["metadata"].get("ownerReferences")):
            into.setdefault(str(owner.get("uid")), {})[resource, place_of(document)] = None

    def _collect(self, resource: Resource, place: Place) -> bool:
        document = self._objects.get(resource, *place)
        if document is None:
            return False
        owners = {str(owner.get("uid")) for owner in mappings(document["metadata"].get("ownerReferences"))}
        if owners & self._objects.uids:
            return False
        self._objects.remove(resource, document)
        return True

    def _see(self, resource: Resource, before: Json | None, after: Json | None) -> None:
        if after is None and before is not None:
            self._gone.append(before["metadata"]["uid"])
        elif after is not None and self._dependents is not None:
            self._file(resource, after, self._dependents)
