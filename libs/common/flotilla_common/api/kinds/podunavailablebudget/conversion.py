"""PodUnavailableBudget between v1alpha1 and v1beta1, on raw documents (podunavailablebudget.md §3).

Two fields of v1beta1 are annotations in v1alpha1, with names that users know. The third has no form there: it is kept
in an annotation of our own, so that an object that is read and written as v1alpha1 does not lose it.
"""

import msgspec

from flotilla_common.api.documents import Json, ensured, is_object, mapping, member, sequence, strings
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.kinds.podunavailablebudget.types import (
    OPERATIONS,
    PROTECTED_OPERATIONS,
    PROTECTED_REPLICAS,
    operations_in,
)
from flotilla_common.api.numbers import whole_number
from flotilla_common.api.versions import Conversion

IGNORED_PODS = "flotilla.kruise.io/pub-ignored-pod-selector"
"""On v1alpha1: `spec.ignoredPodSelector`, as JSON."""


def _to_beta(document: Json) -> None:
    """Turn the annotations of v1alpha1 into fields of v1beta1. Raises ValueError for an annotation that its field
    cannot hold."""
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
    if ignored := annotations.get(IGNORED_PODS):
        fields["ignoredPodSelector"] = _selector(ignored)
        del document["metadata"]["annotations"][IGNORED_PODS]
    if fields:
        ensured(document, "spec").update(fields)


def _selector(written: str) -> Json:
    try:
        return read_json(written, Json)
    except ValueError as fault:
        raise ValueError(f"invalid value of annotation {IGNORED_PODS}: {fault}") from fault


def _to_alpha(document: Json) -> None:
    spec = member(document, "spec")
    operations, replicas = sequence(spec.pop("protectOperations", None)), spec.pop("protectTotalReplicas", None)
    ignored = spec.pop("ignoredPodSelector", None)
    written = {
        PROTECTED_OPERATIONS: ",".join(map(str, operations)) if operations else None,
        PROTECTED_REPLICAS: None if replicas is None else str(replicas),
        IGNORED_PODS: msgspec.json.encode(ignored).decode() if is_object(ignored) else None,
    }
    metadata = member(document, "metadata")
    before = mapping(metadata.get("annotations"))
    after = {key: value for key, value in before.items() if key not in written}
    after |= {key: value for key, value in written.items() if value is not None}
    if after != before:
        ensured(document, "metadata")["annotations"] = after


_VERSIONS = Conversion("PodUnavailableBudget", _to_beta, _to_alpha, group="policy.kruise.io")
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub
