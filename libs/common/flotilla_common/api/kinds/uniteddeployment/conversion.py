"""Converts UnitedDeployments between v1alpha1 and v1beta1, on raw documents (uniteddeployment.md §2.2).

v1beta1 is the hub. The specs are the same, except that v1alpha1 also accepts CloneSet templates in v1alpha1's form;
maps in v1alpha1's status are members of the subsets' statuses in v1beta1.
"""

import copy

from flotilla_common.api.documents import Json, is_object, mapping, mappings, member, text
from flotilla_common.api.kinds.cloneset import conversion as cloneset
from flotilla_common.api.versions import V1ALPHA1, V1BETA1, Conversion

_FLAT = (
    "partition",
    "maxUnavailable",
    "maxSurge",
    "paused",
    "priorityStrategy",
    "scatterStrategy",
    "inPlaceUpdateStrategy",
)
_FLAT_TYPES = ("ReCreate", "InPlaceIfPossible", "InPlaceOnly")


def without_flat_fields(document: Json) -> Json:
    """Return the document with its CloneSet template in v1beta1's form; the same document if it already is."""
    template = member(document, "spec", "template", "cloneSetTemplate")
    if not is_flat(mapping(template.get("spec"))):
        return document
    result = copy.deepcopy(document)
    written = member(result, "spec", "template", "cloneSetTemplate")
    written["spec"] = _nested(written)
    return result


def is_flat(spec: Json) -> bool:
    """Report whether the spec of a CloneSet is in v1alpha1's form."""
    strategy = mapping(spec.get("updateStrategy"))
    return (
        strategy.get("type") in _FLAT_TYPES
        or any(field in strategy for field in _FLAT)
        or "disablePVCReuse" in mapping(spec.get("scaleStrategy"))
    )


def _nested(template: Json) -> Json:
    document = {"apiVersion": V1ALPHA1, "metadata": member(template, "metadata"), "spec": mapping(template.get("spec"))}
    return mapping(cloneset.convert(document, V1BETA1).get("spec"))


def _to_beta(document: Json) -> None:
    template = member(document, "spec", "template", "cloneSetTemplate")
    if is_flat(mapping(template.get("spec"))):
        template["spec"] = _nested(template)
    status = document.get("status")
    if not is_object(status):
        return
    update = mapping(status.pop("updateStatus", None))
    if update.get("updatedRevision"):
        status["updatedRevision"] = update["updatedRevision"]
    subsets = mappings(status.get("subsetStatuses"))
    for values, field in (
        (status.pop("subsetReplicas", None), "replicas"),
        (update.get("currentPartitions"), "partition"),
    ):
        for name, number in mapping(values).items():
            _subset(subsets, name)[field] = number
    if subsets:
        status["subsetStatuses"] = subsets


def _subset(subsets: list[Json], name: str) -> Json:
    for subset in subsets:
        if subset.get("name") == name:
            return subset
    subsets.append({"name": name})
    return subsets[-1]


def _to_alpha(document: Json) -> None:
    status = document.get("status")
    if not is_object(status):
        return
    revision = text(status.pop("updatedRevision", None))
    named = {text(one.get("name")): one for one in mappings(status.get("subsetStatuses")) if one.get("name")}
    if named:
        status["subsetReplicas"] = {name: one.get("replicas", 0) for name, one in named.items()}
    if revision or mappings(status.get("subsetStatuses")):
        update: Json = {"updatedRevision": revision} if revision else {}
        if named:
            update["currentPartitions"] = {name: one.get("partition", 0) for name, one in named.items()}
        status["updateStatus"] = update


_VERSIONS = Conversion("UnitedDeployment", _to_beta, _to_alpha)
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub
