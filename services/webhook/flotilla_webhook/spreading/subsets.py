"""Applies a subset to a pod (workloadspread.md §5.4)."""

import msgspec

from flotilla_common.api.documents import Json, ensured, mapping, mappings, member, sequence, without_nulls
from flotilla_common.api.jsontext import Reader
from flotilla_common.api.kinds.workloadspread.book import cost_of_place
from flotilla_common.api.kinds.workloadspread.targets import COSTED
from flotilla_common.api.kinds.workloadspread.types import (
    ABSENT,
    DELETION_COST,
    MATCHED,
    PLACE,
    Matched,
    Subset,
    WorkloadSpread,
)
from flotilla_common.api.strategic import merge

_NODE_AFFINITY = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")
_DOCUMENTS: Reader[Json] = Reader(Json)


def apply_subset(pod: Json, spread: WorkloadSpread, matched: Matched) -> None:
    """Change the pod for its subset (§5.4). Raises ValueError if the patch cannot be applied.

    A subset that is in the book and no longer in the spec changes nothing.
    """
    subsets = spread.spec.subsets
    place = next((place for place, one in enumerate(subsets) if one.name == matched.subset), None)
    if place is None:
        return
    subset = subsets[place]
    spec = ensured(pod, "spec")
    if subset.tolerations:
        spec["tolerations"] = [*sequence(spec.get("tolerations")), *map(_document, subset.tolerations)]
    _add_terms(ensured(ensured(spec, "affinity"), "nodeAffinity"), subset)
    patched = _patched(pod, subset)
    if patched is not pod:
        pod.clear()
        pod.update(patched)
    annotations = ensured(ensured(pod, "metadata"), "annotations")
    if matched.uid and member(pod, "metadata").get("name"):
        annotations[PLACE], matched = matched.uid, msgspec.structs.replace(matched, uid="")
    annotations[MATCHED] = msgspec.json.encode(matched).decode()
    if spread.spec.target_ref.identity[:2] in COSTED:
        # The value that the controller would write when it sees the pod (§8.4): this saves its write.
        annotations[DELETION_COST] = str(cost_of_place(place, len(subsets)))


def try_patch(pod: Json, spread: WorkloadSpread, name: str) -> None:
    """Check that the patch of the subset of this name can be applied to the pod. Raises ValueError."""
    for subset in spread.spec.subsets:
        if subset.name == name:
            _patched(pod, subset)


def _add_terms(affinity: Json, subset: Subset) -> None:
    required, preferred = _NODE_AFFINITY
    if subset.preferred_node_selector:
        terms = [_document(term) for term in subset.preferred_node_selector]
        affinity[preferred] = [*sequence(affinity.get(preferred)), *terms]
    if subset.required_node_selector == ABSENT:
        return
    own = _document(subset.required_node_selector)
    terms = mappings(member(affinity, required).get("nodeSelectorTerms"))
    affinity[required] = {"nodeSelectorTerms": [_both(term, own) for term in terms] or [own]}


def _both(term: Json, own: Json) -> Json:
    lists = ("matchExpressions", "matchFields")
    added = {key: [*sequence(term.get(key)), *sequence(own.get(key))] for key in lists}
    return term | {key: value for key, value in added.items() if value}


def _patched(pod: Json, subset: Subset) -> Json:
    """Return the pod with the patch of the subset. Raises ValueError."""
    if subset.patch == ABSENT:
        return pod
    try:
        patched = merge(pod, _DOCUMENTS.read(subset.patch))  # with its nulls, which remove fields
    except ValueError as fault:
        raise ValueError(f"the patch of subset {subset.name} cannot be applied: {fault}") from fault
    before, spec = member(pod, "spec").get("priorityClassName"), mapping(patched.get("spec"))
    if not spec:
        raise ValueError(f"the patch of subset {subset.name} leaves no pod")
    if spec.get("priorityClassName") != before:
        spec.pop("priority", None)  # it belongs to the class, which is filled in after us
    return patched


def _document(raw: msgspec.Raw) -> Json:
    return without_nulls(_DOCUMENTS.read(raw))
