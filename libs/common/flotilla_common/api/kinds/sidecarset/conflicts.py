"""Finds conflicts of SidecarSets that may select the same pods, and faults of canaries (sidecarset.md §4.6).

Selectors are compared by their terms, not by existing pods: similar ones count as overlapping.
"""

from collections.abc import Iterable, Iterator, Mapping

from flotilla_common.api.admission.fields import Fault, invalid
from flotilla_common.api.documents import Json, mapping, mappings, member, strings, text, typed
from flotilla_common.api.keys import BASE_ANNOTATION, CANARY_ANNOTATION
from flotilla_common.api.kinds.sidecarset.pods import names_in_pods
from flotilla_common.api.kinds.sidecarset.revisions import canonical_list
from flotilla_common.api.kinds.sidecarset.types import NOT_UPDATE, OVERWRITE, RETAIN
from flotilla_common.api.meta import LabelSelector

_PARTS = ("containers", "initContainers")

_ALL = object()
"""Stands for every value of a label."""


def conflict_faults(document: Json, stored: Iterable[Json]) -> Iterator[Fault]:
    """Yield the conflicts of the document with all stored SidecarSets; both with their defaults."""
    skipped = {text(member(document, "metadata").get("name")), base_of(document)}
    for other in stored:
        name = text(member(other, "metadata").get("name"))
        if name not in skipped and _meet(mapping(document.get("spec")), mapping(other.get("spec"))):
            yield from _faults(mapping(document.get("spec")), name, mapping(other.get("spec")))


def overlapping(one: LabelSelector, other: LabelSelector) -> bool:
    """Report whether some labels may match both."""
    return not _disjoint_given(one, other) and not _disjoint_given(other, one)


def _meet(spec: Json, other: Json) -> bool:
    namespaces = [one.get("namespaceSelector") for one in (spec, other)]
    if None not in namespaces and not overlapping(*map(_selector, namespaces)):
        return False
    return overlapping(_selector(spec.get("selector")), _selector(other.get("selector")))


def _selector(given: object) -> LabelSelector:
    return typed(given or {}, LabelSelector)


def _disjoint_given(known: LabelSelector, asked: LabelSelector) -> bool:
    """Report whether some term of `asked` certainly cannot hold if `known` holds."""
    values = _values(known)
    if any(_excludes(values.get(key), {value}) for key, value in asked.match_labels.items()):
        return True
    for term in asked.match_expressions:
        has = values.get(term.key)
        match term.operator:
            case "In":
                disjoint = _excludes(has, set(term.values))
            case "NotIn":
                disjoint = has is not None and has <= set(term.values)
            case "Exists":
                disjoint = has is None
            case _:
                disjoint = has is not None
        if disjoint:
            return True
    return False


def _excludes(has: set[object] | None, wanted: set[str]) -> bool:
    return has is not None and _ALL not in has and not has & wanted


def _values(selector: LabelSelector) -> dict[str, set[object]]:
    """Return the values that the selector accepts, by key."""
    values: dict[str, set[object]] = {key: {value} for key, value in selector.match_labels.items()}
    for term in selector.match_expressions:
        if term.operator == "In":
            values.setdefault(term.key, set()).update(term.values)
        elif term.operator == "Exists":
            values.setdefault(term.key, set()).add(_ALL)
    return values


def _faults(spec: Json, name: str, other: Json) -> Iterator[Fault]:
    theirs_in_pods = {taken for part in _PARTS for one in mappings(other.get(part)) for taken in names_in_pods(one)}
    for part in _PARTS:
        for ours in sorted(mappings(spec.get(part)), key=lambda one: text(one.get("name"))):
            if taken := sorted(theirs_in_pods.intersection(names_in_pods(ours))):
                detail = f"container {taken[0]} already exists in SidecarSet {name}"
                yield invalid(f"spec.{part}", text(ours.get("name")), detail)
    theirs = _volumes(other)
    for volume, content in _volumes(spec).items():
        if theirs.get(volume, content) != content:
            yield invalid("spec.volumes", volume, f"volume {volume} is another one in SidecarSet {name}")
    patched = _patched(other)
    for key, policy in _patched(spec).items():
        if OVERWRITE in (policy, patched.get(key)) and key in patched:
            yield invalid("spec.patchPodMetadata", key, f"annotation {key} is patched by SidecarSet {name}, too")


def _volumes(spec: Json) -> dict[str, Json]:
    return {text(volume.get("name")): volume for volume in canonical_list(spec, "volumes")}


def _patched(spec: Json) -> dict[str, str]:
    """Return the policies of annotations that are changed even if a pod has them, by key."""
    found: dict[str, str] = {}
    for entry in mappings(spec.get("patchPodMetadata")):
        if (policy := text(entry.get("patchPolicy")) or RETAIN) != RETAIN:
            found |= dict.fromkeys(strings(entry.get("annotations")), policy)
    return found


def base_of(document: Json) -> str:
    """Return the SidecarSet that this one is a canary of; empty if it is not a canary."""
    annotations = member(document, "metadata", "annotations")
    return text(annotations.get(BASE_ANNOTATION)) if annotations.get(CANARY_ANNOTATION) == "true" else ""


def canary_faults(document: Json, old: Json | None, stored: Mapping[str, Json]) -> Iterator[Fault]:
    """Yield the faults of a canary; `stored` are all SidecarSets, by name."""
    base, metadata = base_of(document), member(document, "metadata")
    if not base:
        return
    shown: Json = {"name": metadata.get("name"), "annotations": mapping(metadata.get("annotations"))}
    problems: list[str] = []
    if base == metadata.get("name"):
        problems.append("a canary cannot be its own base")
    if old is not None and text(member(old, "metadata", "annotations").get(BASE_ANNOTATION)) != base:
        problems.append(f"annotation {BASE_ANNOTATION} of a canary is immutable")
    if base not in stored:
        problems.append(f"base SidecarSet {base} not found")
    elif base_of(stored[base]):
        problems.append(f"base SidecarSet {base} is a canary itself")
    if member(document, "spec", "updateStrategy").get("type") != NOT_UPDATE:
        problems.append(f"updateStrategy.type of a canary must be {NOT_UPDATE}")
    yield from (invalid("metadata", shown, problem) for problem in problems)
