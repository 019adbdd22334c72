"""What decides whether a pod may run on a node: node selectors, affinity, taints, tolerations (parts of core/v1)."""

from flotilla_common.api.meta import Model


class Taint(Model):
    key: str = ""
    value: str = ""
    effect: str = ""  # NoSchedule, PreferNoSchedule, NoExecute

    def __str__(self) -> str:
        """As kubectl writes it: `dedicated=gpu:NoSchedule`."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Toleration(Model):
    key: str = ""  # empty, with Exists: all keys
    operator: str = ""  # Equal (the default), Exists
    value: str = ""
    effect: str = ""  # empty: all effects

    def tolerates(self, taint: Taint) -> bool:
        """Whether it lets the pod onto a node with this taint."""
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
    """All requirements have to hold; a term without any holds for no node."""

    match_expressions: list[NodeRequirement] = []  # over labels
    match_fields: list[NodeRequirement] = []  # over metadata.name


class NodeSelector(Model):
    """One of the terms has to hold."""

    node_selector_terms: list[NodeSelectorTerm] = []


class NodeAffinity(Model):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class Affinity(Model):
    node_affinity: NodeAffinity | None = None

    @property
    def required(self) -> NodeSelector | None:
        """The nodes that the pod demands; None if it demands nothing."""
        return self.node_affinity and self.node_affinity.required_during_scheduling_ignored_during_execution
