"""Declares the ResourceDistribution controller: its watches, its writes, and the gatherer of its snapshots.

Secrets and ConfigMaps are read directly, and only those with the name of a source: no others are read, and none is sent
over the bus, where ResourceDistributions are only named.
"""

from collections.abc import Iterable
from functools import partial

import msgspec

from flotilla_common.api.core import Namespace
from flotilla_common.api.kinds.resourcedistribution.types import (
    DISTRIBUTED,
    RESOURCE_DISTRIBUTION,
    ResourceDistribution,
)
from flotilla_common.api.resources import NAMESPACE, Resource
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Trigger, Watch
from flotilla_sidecar.resourcedistribution.copies import Copy
from flotilla_sidecar.resourcedistribution.plan import plan
from flotilla_sidecar.resourcedistribution.snapshot import DistributionSnapshot, NamespaceSelection

SOURCE = "source"
"""Index: ResourceDistributions by kind and name of their source."""

NAME = "name"
"""Index: objects by name, in any namespace."""


def source_of(distribution: ResourceDistribution) -> Iterable[tuple[str, str]]:
    """Return (kind, name) of the distributed resource; empty if the spec is invalid."""
    try:
        source = distribution.source
    except ValueError:
        return ()
    return ((source.resource.kind, source.name),)


def name_of(copy: Copy) -> Iterable[str]:
    """Return the name as an index key."""
    return (copy.metadata.name,)


DISTRIBUTIONS = Watch(
    RESOURCE_DISTRIBUTION, ResourceDistribution, indexes={SOURCE: source_of}, subresources=("status",)
)
NAMESPACES = Watch(NAMESPACE, Namespace)
COPIES = {
    resource: Watch(
        resource,
        Copy,
        owner=RESOURCE_DISTRIBUTION,
        indexes={NAME: name_of},
        writes=("create", "delete", "patch"),
        conditional=True,  # a create fails if the name is taken, every other write is on one version
        named=True,
    )
    for resource in DISTRIBUTED
}


class Gatherer:
    """Builds the snapshot of one ResourceDistribution."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._distributions = context.table(DISTRIBUTIONS)
        self._namespaces = context.table(NAMESPACES)
        self._copies = {resource: context.table(watch) for resource, watch in COPIES.items()}
        self._named = {
            resource: context.named(watch, partial(self._wanted, resource), partial(self._read, resource))
            for resource, watch in COPIES.items()
        }

    def gather(self, key: Key, memory: Memory) -> DistributionSnapshot | None:
        """Return the ResourceDistribution and its surroundings; None when it does not exist."""
        distribution = self._distributions.get(*key)
        if distribution is None:
            return None
        snapshot = DistributionSnapshot(distribution=distribution, failures=memory.failures)
        for kind, name in source_of(distribution):
            resource = next(known for known in DISTRIBUTED if known.kind == kind)
            followed = self._named[resource].follow(name)
            copies = self._copies[resource].by_index(NAME, name)
            return msgspec.structs.replace(
                snapshot,
                namespaces={namespace.metadata.name: namespace for namespace in self._namespaces},
                copies={copy.metadata.namespace: copy for copy in copies} if followed.synced else None,
                trouble=followed.trouble,
            )
        return snapshot

    def _wanted(self, resource: Resource) -> set[str]:
        """Return the names of sources whose ResourceDistributions this replica serves."""
        served = (one for one in self._distributions if self._context.owns(*one.metadata.key))
        return {name for distribution in served for kind, name in source_of(distribution) if kind == resource.kind}

    def _read(self, resource: Resource, name: str) -> None:
        """Plan again once the objects of that name have been read, or cannot be."""
        for key in self._about(resource, name):
            self._context.requeue(*key)

    def _about(self, resource: Resource, name: str) -> list[Key]:
        distributions = self._distributions.by_index(SOURCE, (resource.kind, name))
        return [distribution.metadata.key for distribution in distributions]

    def of_copy(self, resource: Resource, old: Copy | None, new: Copy | None) -> list[Key]:
        """Return the ResourceDistributions of the object's name: the end of a foreign object makes room for a copy."""
        copy = new or old
        return [] if copy is None else self._about(resource, copy.metadata.name)

    def of_namespace(self, old: Namespace | None, new: Namespace | None) -> list[Key]:
        """Return the ResourceDistributions affected by a namespace that came, goes, or has other labels."""
        if _state(old) == _state(new):
            return []
        return [one.metadata.key for one in self._distributions if _is_concerned(one, old, new)]


async def read_copies(context: ControllerContext, key: Key) -> None:
    """Read all objects of the source's name, after a write of unknown outcome. Raises ApiError or Unreachable."""
    distribution = context.table(DISTRIBUTIONS).get(*key)
    if distribution is not None:
        for kind, name in source_of(distribution):
            await context.read_named(next(one for one in DISTRIBUTED if one.kind == kind), name)


def _state(namespace: Namespace | None) -> object:
    return namespace and (namespace.metadata.labels, namespace.metadata.deletion_timestamp is None)


def _is_concerned(distribution: ResourceDistribution, *namespaces: Namespace | None) -> bool:
    try:
        return NamespaceSelection(distribution.spec.targets).concerned_by(*namespaces)
    except ValueError:
        return False


CONTROLLER = ControllerSpec(
    name="resourcedistribution-controller",
    primary=DISTRIBUTIONS,
    watches=(NAMESPACES, *COPIES.values()),
    build=lambda context, options: Gatherer(context),
    triggers=lambda gatherer: [
        Trigger(NAMESPACES, gatherer.of_namespace),
        *(Trigger(watch, partial(gatherer.of_copy, resource)) for resource, watch in COPIES.items()),
    ],
    plan=plan,
    also_read=read_copies,
)
