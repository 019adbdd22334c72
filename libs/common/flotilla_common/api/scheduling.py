"""Types that decide whether a pod may run on a node: node selectors, affinity, taints, tolerations (core/v1)."""

from flotilla_common.api.meta import Model


class Taint(Model):
    key: str = ""
    value: str = ""
    effect: str = ""  # NoSchedule, PreferNoSchedule, NoExecute

    def __str__(self) -> str:
        """Return the taint as kubectl prints it: `dedicated=gpu:NoSchedule`."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Toleration(Model):
    key: str = ""  # empty, with Exists: all keys
    operator: str = ""  # Equal (the default), Exists
    value: str = ""
    effect: str = ""  # empty: all effects

    def tolerates(self, taint: Taint) -> bool:
        """Report whether the toleration allows the pod on a node with this taint."""
        if self.effect not in ("", taint.effect):
            return False
        if self.key not in ("", taint.key):
            return False
        if self.operator == "Exists":
            return True
        return bool(self.key) and self.operator in ("", "Equal") and self.value == taint.value


class NodeRequirement(Model):
    key: str = ""
    operator: str = ""  # In, NotIn, Exists, DoesNotExist, Gt, Lt
    values: list[str] = []


class NodeSelectorTerm(Model):
    """A term whose requirements must all hold; a term without requirements matches no node."""

    match_expressions: list[NodeRequirement] = []  # over labels
    match_fields: list[NodeRequirement] = []  # over metadata.name


class NodeSelector(Model):
    """A list of terms of which at least one must hold."""

    node_selector_terms: list[NodeSelectorTerm] = []


class NodeAffinity(Model):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class Affinity(Model):
    node_affinity: NodeAffinity | None = None

    @property
    def required(self) -> NodeSelector | None:
        """Return the required node selector, or None."""
        return self.node_affinity and self.node_affinity.required_during_scheduling_ignored_during_execution
