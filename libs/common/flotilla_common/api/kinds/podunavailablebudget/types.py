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
    disrupted_pods: dict[str, Moment] = {}  # by name: whose deletion, eviction or resize was admitted, and when
    unavailable_pods: dict[str, Moment] = {}  # by name: whose update was admitted, and when
    unavailable_allowed: int = 0
    current_available: int = 0
    desired_available: int = 0
    total_replicas: int = 0


class PodUnavailableBudget(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()
