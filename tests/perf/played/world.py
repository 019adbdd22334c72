"""The collections of all resources that services read and write."""

from collections.abc import Sequence
from typing import cast

from flotilla_common.api.resources import CONFIG_MAP, EVENT, LEASE, POD, SECRET, Resource
from flotilla_common.installed import published
from tests.perf.played.collection import Collection, Source, Versions
from tests.perf.played.population import NodeSource, PodSource, Population
from tests.testkit.documents import Json

OTHERS = (LEASE, EVENT, CONFIG_MAP, SECRET)
"""Resources that the watcher does not publish, but services read or write."""


class World:
    """Everything that the stand-in serves."""

    def __init__(self, population: Population) -> None:
        self._population = population
        self._versions = Versions()
        self.pods = Collection(POD, self._versions, PodSource(population))
        rest = [one for one in (*published(), *OTHERS) if one != POD]
        self.collections: Sequence[Collection] = [self.pods, *map(self._collection, rest)]

    def last_version(self) -> int:
        """Return the version of the newest object."""
        return self._versions.last

    def settle(self, resource: Resource, document: Json) -> Json:
        """Return what a new object becomes at once: a pod runs."""
        if resource != POD:
            return document
        recorded = self._population.pod
        spec = cast("Json", document["spec"])
        node = spec.get("nodeName") or self._population.node_name(self._versions.last)
        return document | {"spec": spec | {"nodeName": node}, "status": recorded["status"]}

    def _collection(self, resource: Resource) -> Collection:
        collection = Collection(resource, self._versions, self._source(resource))
        for document in self._population.documents(resource):
            meta = document["metadata"]
            collection.put((meta.get("namespace", ""), meta["name"]), document)
        return collection

    def _source(self, resource: Resource) -> Source | None:
        recorded = self._population.of_nodes.get(resource.kind)
        return None if recorded is None else NodeSource(self._population, recorded)
