"""The controllers of Deployments, ReplicaSets and built-in StatefulSets.

The pure functions of `flotilla_common.model` compute the changes; these controllers write them to the apiserver, with
their own durations.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from flotilla_common.api.documents import mapping, member
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, CLAIM, DEPLOYMENT, POD, REPLICA_SET, Resource
from flotilla_common.control.plan import Json, PatchType
from flotilla_common.model.built_in import Change, of_deployment, of_replica_set, of_stateful_set, revision_of
from flotilla_common.model.store import owners_of
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.store import ObjectKey
from tests.simulation.apiserver.wire import Wire
from tests.simulation.cluster.actor import Action, Actor
from tests.simulation.cluster.durations import Durations
from tests.simulation.history import Version

REVISION = "deployment.kubernetes.io/revision"
"""On a Deployment and its ReplicaSets: the number of the template."""


class Workloads:
    """All three."""

    def __init__(self, server: ApiServer, durations: Durations, wire: Wire | None = None) -> None:
        of_kind = {resource: _Controller(server, durations, resource, wire) for resource in (DEPLOYMENT, REPLICA_SET)}
        self._actors = {**of_kind, BUILT_IN_STATEFUL_SET: _StatefulSets(server, durations, BUILT_IN_STATEFUL_SET, wire)}

    @property
    def actors(self) -> Iterable["_Controller"]:
        """One for each kind."""
        return self._actors.values()

    def see(self, version: Version) -> None:
        """Handle a change of a workload or of its objects."""
        if version.resource in self._actors:
            self._actors[version.resource].see(version)
        for owner in owners_of(version.after or version.before or {}):
            for resource, actor in self._actors.items():
                if (owner["kind"], owner["apiVersion"]) == (resource.kind, resource.api_version):
                    actor.touch((version.namespace, owner["name"]))


class _Controller(Actor):
    """Looks after the objects of one kind."""

    def __init__(self, server: ApiServer, durations: Durations, resource: Resource, wire: Wire | None) -> None:
        super().__init__(server, "workloads", resource, wire)
        self.durations = durations

    def next_step(self, place: ObjectKey, document: Json) -> Action | None:
        if "deletionTimestamp" in document["metadata"] or not list(self._changes(document)):
            return None
        return Action("act", self.durations.collect, lambda: self._act(document))

    async def _act(self, document: Json) -> None:
        for resource, before, after in self._changes(document):
            if before is None:
                made: Json = {**resource.type_meta, **(after or {})}
                if self.resource == REPLICA_SET:
                    made["metadata"] = _unnamed(made["metadata"])
                await self.api.create(resource, document["metadata"]["namespace"], msgspec.json.encode(made))
            elif after is None:
                await self._delete(resource, before["metadata"])
            else:
                await self._update(resource, before, after)

    def _changes(self, owner: Json) -> Iterator[Change]:
        now = self.clock.now()
        if self.resource == DEPLOYMENT:
            sets = self._dependents(REPLICA_SET, owner)
            yield from of_deployment(owner, sets, now)
            yield from _numbered(owner, sets)
        else:
            yield from self._about_pods(owner, self._dependents(POD, owner), now)

    def _about_pods(self, owner: Json, pods: list[Json], now: datetime) -> list[Change]:
        return of_replica_set(owner, pods, now)

    def _dependents(self, resource: Resource, owner: Json) -> list[Json]:
        uid = owner["metadata"]["uid"]
        return [one for _, one in self.all(resource) if any(ref["uid"] == uid for ref in owners_of(one))]

    async def _delete(self, resource: Resource, metadata: Json) -> None:
        options = {"preconditions": {"uid": metadata["uid"]}}
        await self.api.delete_with(resource, metadata["namespace"], metadata["name"], options)

    async def _update(self, resource: Resource, before: Json, after: Json) -> None:
        metadata, held = after["metadata"], {"uid": before["metadata"]["uid"]}
        place = metadata["namespace"], metadata["name"]
        if after.get("status") != before.get("status"):
            body = msgspec.json.encode({"metadata": held, "status": after["status"]})
            await self.api.patch(resource, *place, body, PatchType.MERGE, subresource="status")
            return
        annotations = mapping(metadata.get("annotations"))
        body = msgspec.json.encode({"metadata": held | {"annotations": annotations}, "spec": after["spec"]})
        await self.api.patch(resource, *place, body, PatchType.MERGE)


class _StatefulSets(_Controller):
    """Remembers the templates that its sets have had, where the real one makes ControllerRevisions."""

    def __init__(self, server: ApiServer, durations: Durations, resource: Resource, wire: Wire | None) -> None:
        super().__init__(server, durations, resource, wire)
        self._templates: dict[str, dict[str, Json]] = {}  # by uid, then by name; the present one last

    def see(self, version: Version) -> None:
        if version.after is not None:
            seen, name = self._templates.setdefault(version.uid, {}), revision_of(version.after)
            seen.pop(name, None)
            seen[name] = version.after["spec"]["template"]
        super().see(version)

    def _about_pods(self, owner: Json, pods: list[Json], now: datetime) -> list[Change]:
        meta = owner["metadata"]
        claims = [name for (namespace, name), _ in self.all(CLAIM) if namespace == meta["namespace"]]
        return of_stateful_set(owner, pods, claims, self._templates[meta["uid"]], now)


def _unnamed(metadata: Json) -> Json:
    """Return what the apiserver is to find a name for."""
    begin = str(metadata["name"]).rpartition("-")[0]
    return {key: value for key, value in metadata.items() if key != "name"} | {"generateName": f"{begin}-"}


def _numbered(deployment: Json, sets: list[Json]) -> Iterator[Change]:
    """Give the newest ReplicaSet the highest number, and the Deployment the same."""
    newest = next((one for one in sets if one["metadata"]["name"] == _name_of_newest(deployment, sets)), None)
    if newest is None:
        return
    highest = max((_number(one) for one in sets if one is not newest), default=0)
    number = _number(newest) if _number(newest) > highest else highest + 1
    for resource, one in ((REPLICA_SET, newest), (DEPLOYMENT, deployment)):
        if _number(one) != number:
            annotations = member(one, "metadata", "annotations") | {REVISION: str(number)}
            yield resource, one, one | {"metadata": one["metadata"] | {"annotations": annotations}}


def _name_of_newest(deployment: Json, sets: list[Json]) -> str:
    """Return the ReplicaSet whose template, but for the label that tells it apart, is the Deployment's."""
    for one in sets:
        template = one["spec"]["template"]
        labels = {**member(template, "metadata", "labels")}
        labels.pop("pod-template-hash", None)
        if template | {"metadata": template["metadata"] | {"labels": labels}} == deployment["spec"]["template"]:
            return str(one["metadata"]["name"])
    return ""


def _number(document: Json) -> int:
    return int(member(document, "metadata", "annotations").get(REVISION, 0))
