"""Which SidecarSets a new pod gets, and which pods a SidecarSet is about (sidecarset.md §6.2, §6.4)."""

from collections.abc import Iterable, Mapping

import msgspec

from flotilla_common.api.kinds.sidecarset.types import SidecarSet
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.selectors import Selector
from flotilla_common.api.webhooks import NAMESPACE_NAME

_NOTHING = LabelSelector()


class Reach(msgspec.Struct, frozen=True):
    """The pods that a SidecarSet is about, compiled once."""

    selector: Selector | None
    """Over the labels of pods; None selects none."""
    pinned: frozenset[str] | None
    """The only namespaces, where they are selected by their names."""
    namespaces: Selector | None
    """Over the labels of namespaces, where it takes more than their names; None: all."""
    unreadable: bool = False
    """The selector of namespaces cannot be read, so it selects none."""

    @classmethod
    def of(cls, sidecar_set: SidecarSet) -> "Reach":
        """Raises ValueError for a selector of pods that cannot be read."""
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
        """As far as the pod's labels and the name of its namespace tell."""
        if self.selector is None or self.unreadable or not self.selector.matches(labels):
            return False
        return self.pinned is None or namespace in self.pinned

    def includes(self, namespace_labels: Mapping[str, str]) -> bool:
        """As far as the labels of the namespace tell."""
        return self.namespaces is None or self.namespaces.matches(namespace_labels)


def pinned_namespaces(selector: LabelSelector) -> frozenset[str] | None:
    """The namespaces that a selector means by their names alone; None if it says anything else."""
    labels, expressions = selector.match_labels, selector.match_expressions
    if labels.keys() == {NAMESPACE_NAME} and not expressions:
        return frozenset(labels.values())
    if not labels and [(one.key, one.operator) for one in expressions] == [(NAMESPACE_NAME, "In")]:
        return frozenset(expressions[0].values)
    return None


def without_bases(sidecar_sets: Iterable[SidecarSet]) -> list[SidecarSet]:
    """Those that are injected together: a canary takes the place of its base."""
    found = list(sidecar_sets)
    bases = {one.base for one in found}
    return [one for one in found if one.metadata.name not in bases]
