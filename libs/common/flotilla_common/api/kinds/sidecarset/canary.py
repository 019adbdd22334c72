"""What a canary must be: a SidecarSet that takes the place of another one in some pods (sidecarset.md §4.4)."""

from collections.abc import Iterator, Mapping

from flotilla_common.api.admission.fields import Fault, invalid
from flotilla_common.api.documents import Json, mapping, member, text
from flotilla_common.api.keys import BASE_ANNOTATION, CANARY_ANNOTATION
from flotilla_common.api.kinds.sidecarset.types import NOT_UPDATE


def base_of(document: Json) -> str:
    """The SidecarSet that this one is a canary of; empty if it is none."""
    annotations = member(document, "metadata", "annotations")
    return text(annotations.get(BASE_ANNOTATION)) if annotations.get(CANARY_ANNOTATION) == "true" else ""


def canary_faults(document: Json, old: Json | None, stored: Mapping[str, Json]) -> Iterator[Fault]:
    """The faults of a canary; `stored` are all SidecarSets, by name."""
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
