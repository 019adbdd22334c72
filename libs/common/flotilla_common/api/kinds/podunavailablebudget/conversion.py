"""Converts PodUnavailableBudgets between v1alpha1 and v1beta1, on raw documents (podunavailablebudget.md §3).

v1beta1 is the hub. Two of its fields are annotations in v1alpha1.
"""

from flotilla_common.api.documents import Json, ensured, mapping, member, sequence, strings
from flotilla_common.api.kinds.podunavailablebudget.types import (
    OPERATIONS,
    PROTECTED_OPERATIONS,
    PROTECTED_REPLICAS,
    operations_in,
)
from flotilla_common.api.numbers import whole_number
from flotilla_common.api.versions import Conversion, only_beta


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
