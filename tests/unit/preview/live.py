"""A live cluster for plans: the objects of a tiny world, behind the reader that plans use."""

from collections.abc import Sequence
from copy import deepcopy
from datetime import timedelta
from typing import Any

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import Resource
from flotilla_common.clock import ManualClock
from flotilla_common.control.replay_controller import Planning
from flotilla_common.control.watches import Watch
from flotilla_insight.preview.dryrun import Applied
from flotilla_insight.preview.manifest import Manifest
from flotilla_insight.preview.preview import Preview, Reader
from flotilla_insight.preview.report import Report
from tests.unit.cloneset.build import NOW, CloneSetBuilder
from tests.unit.cloneset.world import World


class Shelf(Reader):
    """Objects by kind, read as the apiserver is."""

    def __init__(self, objects: dict[str, list[Json]], forbidden: frozenset[str] = frozenset()) -> None:
        """Prepare. `forbidden`: plurals that may be read in the namespace only."""
        self._objects = objects
        self._forbidden = forbidden
        self.refused: dict[str, str] = {}

    async def read(self, watch: Watch[Any], namespace: str, planning: Planning) -> Sequence[bytes]:
        return await self.list(watch.resource, namespace)

    async def list(self, resource: Resource, namespace: str, name: str = "") -> Sequence[bytes]:
        if resource.plural in self._forbidden and not namespace:
            self.refused[resource.plural] = "not at the cluster scope"
            return ()
        return [msgspec.json.encode(one) for one in self._objects.get(resource.kind, ())]


async def story_of(
    kind: str,
    before: Json,
    after: Json,
    objects: dict[str, list[Json]],
    gates: str = "",
    forbidden: frozenset[str] = frozenset(),
) -> Report:
    """Return the forecast for a change of the object."""
    known = catalogue.called(kind)
    after = deepcopy(after)
    after["metadata"]["generation"] = after["metadata"].get("generation", 1) + 1
    named = {"apiVersion": known.resource.api_version, "kind": kind}
    applied = Applied(
        manifest=Manifest(known, known.resource.version, named | after),
        namespace=after["metadata"].get("namespace", ""),
        before=named | before,
        after=named | after,
        stored=named | after,
    )
    clock = ManualClock(NOW + timedelta(hours=1))
    planning = {known.resource.plural: Planning(gates=gates)}
    return await Preview(Shelf(objects, forbidden), applied, planning, clock).report()


def settled(builder: CloneSetBuilder) -> World:
    """Return a world in which the CloneSet has settled."""
    world = World(builder)
    world.settle()
    return world


async def foreseen(world: World, changed: CloneSetBuilder, gates: str = "") -> Report:
    """Return the forecast for this change of the world's CloneSet."""
    before = world.objects["CloneSet"]["sample"]
    after = before | {"spec": deepcopy(changed.spec)}
    objects = {kind: list(found.values()) for kind, found in world.objects.items() if kind != "CloneSet"}
    return await story_of("CloneSet", before, after, objects, gates)
