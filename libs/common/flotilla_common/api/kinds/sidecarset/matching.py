"""Matches pods with SidecarSets by labels and namespace (sidecarset.md §6.2, §6.4)."""

from collections.abc import Iterable, Mapping

import msgspec

from flotilla_common.api.kinds.sidecarset.types import SidecarSet
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.selectors import Selector
from flotilla_common.api.webhooks import NAMESPACE_NAME

_NOTHING = LabelSelector()


class PodMatcher(msgspec.Struct, frozen=True):
    """The compiled selectors of a SidecarSet."""

    selector: Selector | None
    """Over the labels of pods; None selects no pods."""
    pinned: frozenset[str] | None
    """The only namespaces, if they are selected by name."""
    namespaces: Selector | None
    """Over the labels of namespaces, if they are not selected by name; None: all."""
    unreadable: bool = False
    """True if the selector of namespaces is invalid, so that it selects none."""

    @classmethod
    def of(cls, sidecar_set: SidecarSet) -> "PodMatcher":
        """Compile the selectors. Raises ValueError for an invalid selector of pods."""
        spec = sidecar_set.spec
        selector = Selector.compile(spec.selector or _NOTHING)
        selector = None if selector.empty else selector
        if spec.namespace_selector is None:
            return cls(selector, None, None)
        if (pinned := pinned_namespaces(spec.namespace_selector)) is not None:
            return cls(selector, pinned, None)
        try:
            return cls(selector, None, Selector.compile(spec.namespace_selector))
        except ValueError:
            return cls(selector, None, None, unreadable=True)

    def may_select(self, labels: Mapping[str, str], namespace: str) -> bool:
        """Report whether the pod's labels and the name of its namespace match."""
        if self.selector is None or self.unreadable or not self.selector.matches(labels):
            return False
        return self.pinned is None or namespace in self.pinned

    def includes(self, namespace_labels: Mapping[str, str]) -> bool:
        """Report whether the labels of the namespace match."""
        return self.namespaces is None or self.namespaces.matches(namespace_labels)


def pinned_namespaces(selector: LabelSelector) -> frozenset[str] | None:
    """Return the namespaces that a selector selects by name only; None if it has other terms."""
    labels, expressions = selector.match_labels, selector.match_expressions
    if labels.keys() == {NAMESPACE_NAME} and not expressions:
        return frozenset(labels.values())
    if not labels and [(one.key, one.operator) for one in expressions] == [(NAMESPACE_NAME, "In")]:
        return frozenset(expressions[0].values)
    return None


def without_bases(sidecar_sets: Iterable[SidecarSet]) -> list[SidecarSet]:
    """Return the SidecarSets to inject together: a canary takes the place of its base."""
    found = list(sidecar_sets)
    bases = {one.base for one in found}
    return [one for one in found if one.metadata.name not in bases]
