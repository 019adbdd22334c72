"""Converts WorkloadSpreads between v1alpha1 and v1beta1, on raw documents (workloadspread.md §2).

Two fields have other names, and v1beta1's conditions require reason and message.
"""

from collections.abc import Iterator

from flotilla_common.api.documents import Json, mapping, mappings, member
from flotilla_common.api.versions import Conversion, only_beta

_NAMES = {
    "requiredNodeSelectorTerm": "requiredNodeSelector",
    "preferredNodeSelectorTerms": "preferredNodeSelector",
}


def _to_beta(document: Json) -> None:
    _rename(document, _NAMES)
    for condition in _conditions(document):
        condition["reason"] = condition.get("reason") or "Unknown"
        condition.setdefault("message", "")


def _to_alpha(document: Json) -> None:
    _rename(document, {new: old for old, new in _NAMES.items()})


def _rename(document: Json, names: dict[str, str]) -> None:
    for subset in mappings(member(document, "spec").get("subsets")):
        for before, after in names.items():
            if before in subset:
                subset[after] = subset.pop(before)


def _conditions(document: Json) -> Iterator[Json]:
    status = member(document, "status")
    lists = [status.get("subsetStatuses"), *mapping(status.get("versionedSubsetStatuses")).values()]
    for one in lists:
        for subset in mappings(one):
            yield from mappings(subset.get("conditions"))


_VERSIONS = Conversion(
    "WorkloadSpread",
    _to_beta,
    _to_alpha,
    only_beta(
        "status.subsetStatuses[name].conditions[type].observedGeneration",
        "status.versionedSubsetStatuses.*[name].conditions[type].observedGeneration",
    ),
)
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub
