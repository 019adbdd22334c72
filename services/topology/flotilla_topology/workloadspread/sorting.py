"""Sorts pods into subsets, and computes their deletion costs (workloadspread.md §8.3 and §8.4).

A pod that was admitted while the WorkloadSpread existed names its subset. An older pod is assigned once to the subset
that fits its node best, and names it from then on. A pod for which no subset had room belongs to none, and is left
alone. By their costs, controllers remove pods of the last subset first.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.documents import Json, mapping, member
from flotilla_common.api.jsontext import Reader, read_json
from flotilla_common.api.kinds.workloadspread.book import MOST, cost_of_place, is_left_out, limit_of, matched_of
from flotilla_common.api.kinds.workloadspread.types import (
    ABSENT,
    DELETION_COST,
    FAKE_SUBSET,
    UNLIMITED,
    Subset,
    WorkloadSpread,
)
from flotilla_common.api.meta import EARLIEST, Model
from flotilla_common.api.scheduling import NodeSelectorTerm, Toleration
from flotilla_common.api.strategic import merge
from flotilla_common.workload.placement import holds
from flotilla_topology.workloadspread.snapshot import Target, WorkloadSpreadSnapshot

_DOCUMENTS: Reader[Json] = Reader(Json)
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class _Preference(Model):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """The node requirements of a subset, decoded."""

    subset: Subset
    required: NodeSelectorTerm | None
    preferred: Sequence[_Preference]
    tolerations: Sequence[Toleration]
    patch: Json


class Sorted(msgspec.Struct, frozen=True, kw_only=True):
    """The pods of the target, by version and subset."""

    by_version: Mapping[str, Mapping[str, Sequence[Pod]]]  # version, then subset
    adopted: Sequence[tuple[Pod, str]]  # pods that need an annotation with their subset
    left_out: Sequence[Pod] = ()  # pods for which no subset had room: neither counted nor written
    unreadable: Sequence[str] = ()  # subsets that cannot be read, with the cause

    def of(self, subset: str) -> list[Pod]:
        """Return the pods of a subset, of all versions."""
        return [pod for subsets in self.by_version.values() for pod in subsets.get(subset, ())]


def sort_pods(snapshot: WorkloadSpreadSnapshot, replicas: int) -> Sorted:
    """Sort the pods by version and subset. Raises ValueError if a limit cannot be read."""
    spread = snapshot.spread
    names = {subset.name for subset in spread.spec.subsets}
    places, unreadable = _read_places(spread.spec.subsets)
    by_version: dict[str, dict[str, list[Pod]]] = {}
    strangers: list[Pod] = []
    left_out: list[Pod] = []
    for pod in snapshot.pods:
        if is_left_out(spread, pod.metadata):
            left_out.append(pod)
            continue
        matched = matched_of(pod.metadata.annotations)
        if matched is None or matched.name != spread.metadata.name or not matched.subset:
            strangers.append(pod)
            continue
        subset = matched.subset if matched.subset in names else FAKE_SUBSET
        by_version.setdefault(snapshot.versions[pod.metadata.uid], {}).setdefault(subset, []).append(pod)
    adopted: list[tuple[Pod, str]] = []
    for pod in strangers:
        of_version = by_version.setdefault(snapshot.versions[pod.metadata.uid], {})
        subset = _best(places, pod, snapshot.nodes.get(pod.spec.node_name), of_version, replicas)
        of_version.setdefault(subset, []).append(pod)
        if subset != FAKE_SUBSET:
            adopted.append((pod, subset))
    return Sorted(by_version=by_version, adopted=adopted, left_out=left_out, unreadable=unreadable)


def _read_places(subsets: Iterable[Subset]) -> tuple[list[_Place], list[str]]:
    places: list[_Place] = []
    unreadable: list[str] = []
    for subset in subsets:
        try:
            places.append(_read_place(subset))
        except ValueError as error:
            unreadable.append(f"subset {subset.name}: {error}")
    return places, unreadable


def _read_place(subset: Subset) -> _Place:
    required = subset.required_node_selector
    return _Place(
        subset=subset,
        required=read_json(required, NodeSelectorTerm) if required != ABSENT else None,
        preferred=[read_json(preference, _Preference) for preference in subset.preferred_node_selector],
        tolerations=[read_json(toleration, Toleration) for toleration in subset.tolerations],
        patch=_read_patch(subset),
    )


def _read_patch(subset: Subset) -> Json:
    """Return the patch. Raises ValueError if it applies to no pod, so that the webhook rejects the subset's pods."""
    if subset.patch == ABSENT:
        return {}
    patch = _DOCUMENTS.read(subset.patch)  # with its nulls, which remove members
    try:
        merge({}, patch)
    except ValueError as error:
        raise ValueError(f"its patch cannot be applied, so its pods are rejected: {error}") from error
    return patch


def _best(
    places: Sequence[_Place], pod: Pod, node: Node | None, taken: Mapping[str, Sequence[Pod]], replicas: int
) -> str:
    """Return the subset that matches the pod's node with the highest score; the first of equals."""
    best, highest = FAKE_SUBSET, -1
    for place in places if node is not None else ():
        if node is not None and _matches(place, pod, node):
            score = _score(place, pod, node, len(taken.get(place.subset.name, ())), replicas)
            if score > highest:
                best, highest = place.subset.name, score
    return best


def _matches(place: _Place, pod: Pod, node: Node) -> bool:
    tolerations = [*pod.spec.tolerations, *place.tolerations]
    if not all(any(toleration.tolerates(taint) for toleration in tolerations) for taint in node.spec.taints):
        return False
    if place.required is None:
        return True
    demanded = pod.spec.affinity.required if pod.spec.affinity is not None else None
    terms = demanded.node_selector_terms if demanded is not None else []
    return any(_holds(_both(term, place.required), node) for term in terms or [NodeSelectorTerm()])


def _both(term: NodeSelectorTerm, other: NodeSelectorTerm) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        match_expressions=[*term.match_expressions, *other.match_expressions],
        match_fields=[*term.match_fields, *other.match_fields],
    )


def _holds(term: NodeSelectorTerm, node: Node) -> bool:
    return holds(term, node.metadata.name, node.metadata.labels)


def _score(place: _Place, pod: Pod, node: Node, taken: int, replicas: int) -> int:
    weight = sum(term.weight for term in place.preferred if _holds(term.preference, node))
    limit = limit_of(place.subset, replicas)
    has_room = taken < (MOST if limit == UNLIMITED else limit)
    return 100 * weight + 10 * bool(place.patch and _is_patched(pod, place.patch)) + has_room


def _is_patched(pod: Pod, patch: Json) -> bool:
    """Report whether the patch would change nothing in the fields read of the pod, except annotations."""
    document: Json = msgspec.to_builtins(pod)
    try:
        changed = merge(document, patch)
    except ValueError:
        return False
    for version in (document, changed):
        version["metadata"] = {key: value for key, value in member(version, "metadata").items() if key != "annotations"}
    return changed == document


def metadata_of_patch(spread: WorkloadSpread, subset: str) -> Json:
    """Return the labels and annotations that an existing pod gets from the patch of its subset."""
    patch = next((one.patch for one in spread.spec.subsets if one.name == subset), ABSENT)
    if patch == ABSENT:
        return {}
    try:
        return mapping(_DOCUMENTS.read(patch).get("metadata"))
    except ValueError:
        return {}


class Cost(msgspec.Struct, frozen=True):
    """The deletion cost that a pod should have."""

    pod: Pod
    subset: str
    cost: int


def changed_costs(subsets: Sequence[Subset], target: Target, pods: Sorted) -> Iterator[Cost]:
    """Yield the active pods whose cost must change. Raises ValueError if a limit cannot be read."""
    for version, by_subset in pods.by_version.items():
        for subset, cost, priced in _costs(subsets, target, version, by_subset):
            text = str(cost)
            yield from (
                Cost(pod, subset, cost) for pod in priced if pod.metadata.annotations.get(DELETION_COST) != text
            )


def _costs(
    subsets: Sequence[Subset], target: Target, version: str, by_subset: Mapping[str, Sequence[Pod]]
) -> Iterator[tuple[str, int, Sequence[Pod]]]:
    """Yield the active pods of one version by subset and cost."""
    count = len(subsets)
    reverse = target.ordered and version != target.latest
    for index, subset in enumerate(subsets):
        place = count - 1 - index if reverse else index
        active = [pod for pod in by_subset.get(subset.name, ()) if pod.active]
        limit = limit_of(subset, target.replicas)
        surplus = max(len(active) - limit, 0) if limit != UNLIMITED else 0
        if surplus:
            active.sort(key=most_deletable)
            yield subset.name, -100 * (place + 1), active[:surplus]
        yield subset.name, cost_of_place(place, count), active[surplus:]
    yield FAKE_SUBSET, -100 * (count + 1), [pod for pod in by_subset.get(FAKE_SUBSET, ()) if pod.active]


def most_deletable(pod: Pod) -> tuple[object, ...]:
    """Return a sort key that puts the most dispensable pods first."""
    ready_since = pod.ready_since
    created = pod.metadata.creation_timestamp or EARLIEST
    restarts = max((status.restart_count for status in pod.status.container_statuses), default=0)
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 2),
        pod.ready,
        -ready_since.timestamp() if ready_since is not None else 0.0,
        -restarts,
        -created.timestamp(),
        pod.metadata.name,  # arbitrary, but the same in every pass
    )
