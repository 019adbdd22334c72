"""PodUnavailableBudget in its storage version, policy.kruise.io/v1beta1 (podunavailablebudget.md §2, §3).

The conversion works on raw documents: two fields are annotations in v1alpha1.
"""

from flotilla_common.api.documents import Json, ensured, mapping, member, sequence, strings
from flotilla_common.api.meta import IntOrString, LabelSelector, Model, Moment, ObjectMeta, TargetRef
from flotilla_common.api.numbers import whole_number
from flotilla_common.api.resources import Resource
from flotilla_common.api.versions import Conversion, only_beta

POD_UNAVAILABLE_BUDGET = Resource("policy.kruise.io", "v1beta1", "podunavailablebudgets", "PodUnavailableBudget")

PROTECTED_OPERATIONS = "kruise.io/pub-protect-operations"
"""The annotation of a budget that is v1alpha1's form of `protectOperations`, separated by commas."""
PROTECTED_REPLICAS = "pub.kruise.io/protect-total-replicas"
"""The annotation of a budget that is v1alpha1's form of `protectTotalReplicas`."""
NOT_PROTECTED = "pub.kruise.io/no-protect"
"""The annotation of a pod that, if true, exempts it from all budgets."""
RELATED_BUDGET, LEGACY_RELATED_BUDGET = "pub.kruise.io/related-pub", "kruise.io/related-pub"
"""Annotations of a pod with its budget. Both are written; the second is read if the first is empty."""
UNAVAILABLE = "unavailable-pod.kruise.io/"
"""The key prefix of labels that make a ready pod count as unavailable."""

DELETE, UPDATE, EVICT, RESIZE = "DELETE", "UPDATE", "EVICT", "RESIZE"
OPERATIONS = (DELETE, UPDATE, EVICT, RESIZE)
BY_DEFAULT = frozenset({DELETE, UPDATE, EVICT})
"""The operations that are protected if a budget names none."""


def operations_in(written: str) -> list[str]:
    """Return the operations in the annotation `PROTECTED_OPERATIONS`, known or unknown."""
    return [one.strip() for one in written.split(",") if one.strip()]


DELETE_GATE, UPDATE_GATE = "PodUnavailableBudgetDeleteGate", "PodUnavailableBudgetUpdateGate"

DISRUPTED_SECONDS, UNAVAILABLE_SECONDS = 20.0, 10.0
"""The longest life of entries of `disruptedPods` and `unavailablePods` (podunavailablebudget.md §7.3)."""

AHEAD = "ahead/"
"""The prefix of keys of `disruptedPods` for units that a replica of the webhook has reserved (ADR 33).

The name of the replica and a token follow. No pod name contains a slash.
"""


def is_ahead(key: str) -> bool:
    """Report whether a key of `disruptedPods` is that of a reserved unit."""
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
    """The remaining budget, and its users. The four numbers are stored even if they are 0."""

    observed_generation: int = 0
    disrupted_pods: dict[str, Moment] = {}
    """The times of admitted deletions, evictions and resizes, by pod; also the reserved units."""
    unavailable_pods: dict[str, Moment] = {}  # the times of admitted updates, by pod
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
        """Return the number of reserved units."""
        return sum(is_ahead(key) for key in self.disrupted_pods)


class PodUnavailableBudget(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


def _to_beta(document: Json) -> None:
    """Turn the annotations of v1alpha1 into fields of v1beta1. Raises ValueError for an invalid annotation."""
    annotations = strings(member(document, "metadata").get("annotations"))
    operations = operations_in(annotations.get(PROTECTED_OPERATIONS, ""))
    if unknown := [one for one in operations if one not in OPERATIONS]:
        raise ValueError(f"invalid value {unknown[0]!r} of annotation {PROTECTED_OPERATIONS}")
    fields: Json = {"protectOperations": operations} if operations else {}
    if replicas := annotations.get(PROTECTED_REPLICAS):
        try:
            fields["protectTotalReplicas"] = whole_number(replicas)
        except ValueError as fault:
            raise ValueError(f"invalid value of annotation {PROTECTED_REPLICAS}: {fault}") from fault
    if fields:
        ensured(document, "spec").update(fields)


def _to_alpha(document: Json) -> None:
    spec = member(document, "spec")
    operations, replicas = sequence(spec.pop("protectOperations", None)), spec.pop("protectTotalReplicas", None)
    written = {
        PROTECTED_OPERATIONS: ",".join(map(str, operations)) if operations else None,
        PROTECTED_REPLICAS: None if replicas is None else str(replicas),
    }
    metadata = member(document, "metadata")
    before = mapping(metadata.get("annotations"))
    after = {key: value for key, value in before.items() if key not in written}
    after |= {key: value for key, value in written.items() if value is not None}
    if after != before:
        ensured(document, "metadata")["annotations"] = after


_VERSIONS = Conversion(
    "PodUnavailableBudget", _to_beta, _to_alpha, only_beta("spec.ignoredPodSelector"), group="policy.kruise.io"
)
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub
