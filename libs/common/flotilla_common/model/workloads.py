"""Models the controllers of Deployments, ReplicaSets and built-in StatefulSets, if there are such objects.

A loaded workload is taken to be settled: something is due only after it, or one of its pods, changes.
"""

from collections.abc import Mapping
from datetime import datetime

from flotilla_common.api.documents import Json, member
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, CLAIM, DEPLOYMENT, POD, REPLICA_SET, Resource
from flotilla_common.model import writes
from flotilla_common.model.built_in import (
    Change,
    available_from,
    of_deployment,
    of_replica_set,
    of_stateful_set,
    revision_of,
)
from flotilla_common.model.store import Objects, Place, owners_of, place_of

DEPENDENTS: Mapping[Resource, tuple[Resource, ...]] = {
    DEPLOYMENT: (REPLICA_SET, POD),
    REPLICA_SET: (POD,),
    BUILT_IN_STATEFUL_SET: (POD, CLAIM),
}
"""The resources that have to be loaded with each of these kinds."""


class Workloads:
    """The controllers of all these kinds."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._due: dict[tuple[Resource, Place], None] = {}
        self._templates: dict[str, dict[str, Json]] = {}  # of StatefulSets, by uid and name of the revision
        self._wakes: dict[tuple[Resource, Place], datetime] = {}
        objects.listen(self._see)

    @property
    def wake_at(self) -> datetime | None:
        """Return the earliest moment at which a pod becomes available, or None."""
        return min(self._wakes.values(), default=None)

    def step(self) -> bool:
        """Do what is due."""
        now = self._objects.clock.now()
        due, self._due = self._due | {one: None for one, at in self._wakes.items() if at <= now}, {}
        changes = [change for one in due for change in self._changes(*one, now)]
        for resource, before, after in changes:
            if before is None:
                writes.create(self._objects, resource, after or {})
            elif after is None:
                writes.delete(self._objects, resource, before, {})
            else:
                self._update(resource, before, after)
        return bool(changes)

    def _update(self, resource: Resource, before: Json, after: Json) -> None:
        """Apply the changed members only, so that a resize and a status update of one pass both take effect."""
        held = self._objects.get(resource, *place_of(before)) or before
        changed = {key: value for key, value in after.items() if value != before.get(key)}
        writes.store(self._objects, resource, held, held | changed)

    def _changes(self, resource: Resource, place: Place, now: datetime) -> list[Change]:
        self._wakes.pop((resource, place), None)
        owner = self._objects.get(resource, *place)
        if owner is None or "deletionTimestamp" in owner["metadata"]:
            return []
        if resource == DEPLOYMENT:
            sets = self._dependents(REPLICA_SET, owner)
            is_unknown = not sets and member(owner, "status").get("replicas")
            return [] if is_unknown else of_deployment(owner, sets, now)
        pods = self._dependents(POD, owner)
        moments = [at for pod in pods if (at := available_from(pod, owner)) is not None and at > now]
        if moments:
            self._wakes[resource, place] = min(moments)
        if resource == REPLICA_SET:
            return of_replica_set(owner, pods, now)
        claims = [one["metadata"]["name"] for one in self._objects.all(CLAIM) if place_of(one)[0] == place[0]]
        return of_stateful_set(owner, pods, claims, self._seen_templates(owner), now)

    def _dependents(self, resource: Resource, owner: Json) -> list[Json]:
        uid = owner["metadata"]["uid"]
        return [one for one in self._objects.all(resource) if any(ref["uid"] == uid for ref in owners_of(one))]

    def _seen_templates(self, owner: Json) -> dict[str, Json]:
        """Return the StatefulSet's templates by revision, the present one last."""
        seen, template = self._templates.setdefault(owner["metadata"]["uid"], {}), owner["spec"]["template"]
        name = next((name for name, one in seen.items() if one == template), "")
        if not name:
            told = "" if seen else member(owner, "status").get("updateRevision")
            name = told or revision_of(owner)
        seen[name] = seen.pop(name, template)
        return seen

    def _see(self, resource: Resource, before: Json | None, after: Json | None) -> None:
        document = after or before or {}
        if resource in DEPENDENTS:
            self._due[resource, place_of(document)] = None
        if resource == BUILT_IN_STATEFUL_SET and before is not None:
            self._seen_templates(before)
        if resource in (POD, REPLICA_SET):
            for reference in owners_of(document):
                found = self._objects.referred(reference, place_of(document)[0])
                if found is not None and found[0] in DEPENDENTS:
                    self._due[found[0], place_of(found[1])] = None
