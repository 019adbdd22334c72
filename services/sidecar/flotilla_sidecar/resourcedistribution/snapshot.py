"""The input of planning one ResourceDistribution, and the selection of its namespaces (resourcedistribution.md §3).

It consists of the object, all namespaces, and all objects of the source's kind and name.
"""

from collections.abc import Iterable, Mapping

import msgspec

from flotilla_common.api.core import Namespace
from flotilla_common.api.kinds.resourcedistribution.types import RESOURCE_DISTRIBUTION, ResourceDistribution, Targets
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import ObjectRef
from flotilla_sidecar.resourcedistribution.copies import Copy

SYSTEM = frozenset({"kube-system", "kube-public"})
"""Namespaces that are never targets, regardless of the spec."""


class DistributionSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One ResourceDistribution and its surroundings at one moment."""

    distribution: ResourceDistribution
    namespaces: Mapping[str, Namespace] = {}
    copies: Mapping[str, Copy] | None = None  # by namespace, other owners' objects included; None: not read yet
    trouble: str = ""  # why they cannot be read
    failures: Mapping[str, str] = {}  # errors of the last pass's writes, by phase

    @property
    def subject(self) -> ObjectRef:
        """The ResourceDistribution, as events and the bus name it."""
        return ObjectRef.of(RESOURCE_DISTRIBUTION, self.distribution.metadata)


class NamespaceSelection:
    """The targets of one ResourceDistribution, compiled."""

    def __init__(self, targets: Targets) -> None:
        """Compile the targets. Raises ValueError for an unreadable selector."""
        self._all = targets.all_namespaces
        self._named = frozenset(targets.included_namespaces.names)
        self._excluded = SYSTEM | frozenset(targets.excluded_namespaces.names)
        self._selector = Selector.compile(targets.namespace_selector)

    def matched(self, namespaces: Mapping[str, Namespace]) -> list[str]:
        """Return the targets, by name; some may not exist."""
        matching = {name for name, namespace in namespaces.items() if self.matches(namespace)}
        return sorted(matching if self._all else matching | (self._named - self._excluded))

    def matches(self, namespace: Namespace) -> bool:
        """Report whether an existing namespace is a target."""
        name = namespace.metadata.name
        if name in self._excluded:
            return False
        return self._all or name in self._named or self._selects(namespace)

    def concerned_by(self, *namespaces: Namespace | None) -> bool:
        """Report whether one of these states of a namespace makes it a target, so that its changes matter."""
        return any(self.matches(namespace) for namespace in namespaces if namespace is not None)

    def _selects(self, namespace: Namespace) -> bool:
        """Report whether the selector matches. A selector without terms selects nothing."""
        return not self._selector.empty and self._selector.matches(namespace.metadata.labels)


def active_namespaces(names: Iterable[str], namespaces: Mapping[str, Namespace]) -> list[str]:
    """Return the names of namespaces that exist and are not terminating: only those accept writes."""
    existing = [name for name in names if name in namespaces]
    return [name for name in existing if namespaces[name].metadata.deletion_timestamp is None]
