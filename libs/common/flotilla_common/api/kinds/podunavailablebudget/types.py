"""PodUnavailableBudget in its hub and storage version, policy.kruise.io/v1beta1 (podunavailablebudget.md §2)."""

from flotilla_common.api.meta import IntOrString, LabelSelector, Model, ObjectMeta, TargetRef
from flotilla_common.api.moments import Moment
from flotilla_common.api.resources import Resource

POD_UNAVAILABLE_BUDGET = Resource("policy.kruise.io", "v1beta1", "podunavailablebudgets", "PodUnavailableBudget")

PROTECTED_OPERATIONS = "kruise.io/pub-protect-operations"
"""On a budget: operations, separated by commas. How v1alpha1 says `protectOperations`."""
PROTECTED_REPLICAS = "pub.kruise.io/protect-total-replicas"
"""On a budget: how v1alpha1 says `protectTotalReplicas`."""
NOT_PROTECTED = "pub.kruise.io/no-protect"
"""On a pod: true keeps every budget from refusing anything about it."""
RELATED_BUDGET, LEGACY_RELATED_BUDGET = "pub.kruise.io/related-pub", "kruise.io/related-pub"
"""On a pod: the name of the budget that protects it. Both are written; the second is read where the first is empty."""
UNAVAILABLE = "unavailable-pod.kruise.io/"
"""What the keys of labels begin with that make a ready pod count as unavailable."""

DELETE, UPDATE, EVICT, RESIZE = "DELETE", "UPDATE", "EVICT", "RESIZE"
OPERATIONS = (DELETE, UPDATE, EVICT, RESIZE)
BY_DEFAULT = frozenset({DELETE, UPDATE, EVICT})
"""The operations that are protected where a budget names none."""


def operations_in(written: str) -> list[str]:
    """Return the operations in the annotation `PROTECTED_OPERATIONS`, whatever they are called."""
    return [one.strip() for one in written.split(",") if one.strip()]


DELETE_GATE, UPDATE_GATE = "PodUnavailableBudgetDeleteGate", "PodUnavailableBudgetUpdateGate"

DISRUPTED_SECONDS, UNAVAILABLE_SECONDS = 20.0, 10.0
"""How long an entry of `disruptedPods` and of `unavailablePods` is kept at most (podunavailablebudget.md §7.3)."""

AHEAD = "ahead/"
"""The beginning of keys of `disruptedPods` that stand for units which a replica of the webhook has taken ahead (ADR
33). The name of the replica and a token follow. No name of a pod has a slash."""


def is_ahead(key: str) -> bool:
    """Return whether a key of `disruptedPods` stands for a unit that was taken ahead."""
    return key.startswith(AHEAD)


class BudgetSpec(Model):
    selector: LabelSelector | None = None
    target_ref: TargetRef | None = None
    max_unavailable: IntOrString | None = None
    min_available: IntOrString | None = None
    protect_operations: list[str] = []
    protect_total_replicas: int | None = None
    ignored_pod_selector: LabelSelector | None = None


class BudgetStatus(Model):
    """What is left of the budget, and who uses it. The four numbers are stored also where they are 0."""

    observed_generation: int = 0
    disrupted_pods: dict[str, Moment] = {}
    """By name: whose deletion, eviction or resize was admitted, and when; and the units that were taken ahead."""
    unavailable_pods: dict[str, Moment] = {}  # by name: whose update was admitted, and when
    unavailable_allowed: int = 0
    current_available: int = 0
    desired_available: int = 0
    total_replicas: int = 0

    @property
    def disruptions(self) -> dict[str, Moment]:
        """Return the entries of `disrupted_pods` that name pods."""
        return {name: at for name, at in self.disrupted_pods.items() if not is_ahead(name)}

    @property
    def units_ahead(self) -> int:
        """Return the number of units that are taken ahead."""
        return sum(is_ahead(key) for key in self.disrupted_pods)


class PodUnavailableBudget(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()
