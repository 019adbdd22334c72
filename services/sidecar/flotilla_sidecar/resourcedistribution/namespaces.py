"""Selects the namespaces that get a copy (resourcedistribution.md §3)."""

from collections.abc import Iterable, Mapping

from flotilla_common.api.core import Namespace
from flotilla_common.api.kinds.resourcedistribution.types import Targets
from flotilla_common.api.selectors import Selector

SYSTEM = frozenset({"kube-system", "kube-public"})
"""Namespaces that are never targets, regardless of the spec."""


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
        found = {name for name, one in namespaces.items() if self.matches(one)}
        return sorted(found if self._all else found | (self._named - self._excluded))

    def matches(self, namespace: Namespace) -> bool:
        """Report whether an existing namespace is a target."""
        name = namespace.metadata.name
        if name in self._excluded:
            return False
        return self._all or name in self._named or self._selects(namespace)

    def concerned_by(self, *namespaces: Namespace | None) -> bool:
        """Report whether one of these states of a namespace makes it a target, so that its changes matter."""
        return any(self.matches(one) for one in namespaces if one is not None)

    def _selects(self, namespace: Namespace) -> bool:
        """Report whether the selector matches. A selector without terms selects nothing."""
        return not self._selector.empty and self._selector.matches(namespace.metadata.labels)


def active_namespaces(names: Iterable[str], namespaces: Mapping[str, Namespace]) -> list[str]:
    """Return the names of namespaces that exist and are not terminating: only those accept writes."""
    found = ((name, namespaces.get(name)) for name in names)
    return [name for name, one in found if one is not None and one.metadata.deletion_timestamp is None]
