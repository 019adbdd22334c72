"""The ResourceDistribution controller: what it watches and writes, and what it plans from.

Secrets and ConfigMaps are read directly, and only those that bear the name of a source: what else is in the cluster is
no business of this service, and none of it goes over the bus. ResourceDistributions themselves are only named there.
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
from flotilla_common.control.controller import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Watch
from flotilla_common.control.wiring import Wiring
from flotilla_sidecar.resourcedistribution.content import Copy
from flotilla_sidecar.resourcedistribution.plan import plan
from flotilla_sidecar.resourcedistribution.snapshot import DistributionSnapshot
from flotilla_sidecar.resourcedistribution.targets import Choice

SOURCE = "source"
"""Index: ResourceDistributions by kind and name of their source."""

NAME = "name"
"""Index: objects by name, in whatever namespace."""


def source_of(distribution: ResourceDistribution) -> Iterable[tuple[str, str]]:
    """(kind, name) of what is distributed; none of what cannot be."""
    try:
        source = distribution.source
    except ValueError:
        return ()
    return ((source.resource.kind, source.name),)


def name_of(copy: Copy) -> Iterable[str]:
    """The name, as an index wants it."""
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
        conditional=True,  # a create meets whoever has the name, everything else is of one version
        named=True,
    )
    for resource in DISTRIBUTED
}


class Gatherer:
    """Builds the snapshot of one ResourceDistribution."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._distributions = wiring.table(DISTRIBUTIONS)
        self._namespaces = wiring.table(NAMESPACES)
        self._copies = {resource: wiring.table(watch) for resource, watch in COPIES.items()}
        self._named = {
            resource: wiring.named(watch, partial(self._wanted, resource), partial(self._read, resource))
            for resource, watch in COPIES.items()
        }
        wiring.wake(NAMESPACES, self._of_namespace)
        for resource, watch in COPIES.items():
            wiring.wake(watch, partial(self._of_copy, resource))

    def gather(self, key: Key, memory: Memory) -> DistributionSnapshot | None:
        """The ResourceDistribution and its surroundings; None when it does not exist."""
        distribution = self._distributions.get(*key)
        if distribution is None:
            return None
        snapshot = DistributionSnapshot(distribution=distribution, failures=memory.failures)
        for kind, name in source_of(distribution):
            resource = next(one for one in DISTRIBUTED if one.kind == kind)
            followed = self._named[resource].follow(name)
            found = self._copies[resource].by_index(NAME, name)
            return msgspec.structs.replace(
                snapshot,
                namespaces={one.metadata.name: one for one in self._namespaces},
                copies={copy.metadata.namespace: copy for copy in found} if followed.synced else None,
                trouble=followed.trouble,
            )
        return snapshot

    def _wanted(self, resource: Resource) -> set[str]:
        """Names of sources whose ResourceDistributions this replica serves."""
        served = (one for one in self._distributions if self._wiring.owns(*one.metadata.key))
        return {name for one in served for kind, name in source_of(one) if kind == resource.kind}

    def _read(self, resource: Resource, name: str) -> None:
        """What bears the name is known now, or cannot be."""
        for key in self._about(resource, name):
            self._wiring.again(*key)

    def _about(self, resource: Resource, name: str) -> list[Key]:
        return [one.metadata.key for one in self._distributions.by_index(SOURCE, (resource.kind, name))]

    def _of_copy(self, resource: Resource, old: Copy | None, new: Copy | None) -> list[Key]:
        """Whoever else's object it is: with its end there is room for a copy."""
        copy = new or old
        return [] if copy is None else self._about(resource, copy.metadata.name)

    def _of_namespace(self, old: Namespace | None, new: Namespace | None) -> list[Key]:
        """It came, goes or is gone, or has other labels."""
        if _state(old) == _state(new):
            return []
        return [one.metadata.key for one in self._distributions if _is_concerned(one, old, new)]


async def read_copies(wiring: Wiring, key: Key) -> None:
    """Read everything that bears the source's name, after a write that may have happened or not. Raises ApiError or
    Unreachable."""
    distribution = wiring.table(DISTRIBUTIONS).get(*key)
    if distribution is not None:
        for kind, name in source_of(distribution):
            await wiring.read_named(next(one for one in DISTRIBUTED if one.kind == kind), name)


def _state(namespace: Namespace | None) -> object:
    return namespace and (namespace.metadata.labels, namespace.metadata.deletion_timestamp is None)


def _is_concerned(distribution: ResourceDistribution, *namespaces: Namespace | None) -> bool:
    try:
        return Choice(distribution.spec.targets).concerned_by(*namespaces)
    except ValueError:
        return False


CONTROLLER = ControllerSpec(
    name="resourcedistribution-controller",
    primary=DISTRIBUTIONS,
    watches=(NAMESPACES, *COPIES.values()),
    build=lambda wiring, options: Gatherer(wiring),
    plan=plan,
    also_read=read_copies,
)
