"""Calculates whether one revision can become another in a running pod, and how (common.md §9.2, §9.3).

The two templates are compared as canonical documents, so that spelling, or the release that wrote a revision, makes no
difference. A running pod must be able to take every difference; otherwise the pod is recreated.
"""

from decimal import Decimal
from functools import lru_cache
from typing import Any, cast

import msgspec

from flotilla_common.api import quantity
from flotilla_common.api.changes import Difference, Path, differences, path_text
from flotilla_common.api.core import Container, ControllerRevision
from flotilla_common.api.documents import mapping, mappings, sequence, strings
from flotilla_common.control.plan import Json
from flotilla_common.gates import Gates
from flotilla_common.workload.hashing import env_from_metadata
from flotilla_common.workload.inplace.state import ContainerMeta, UpdateSpec
from flotilla_common.workload.revision_codec import RevisionCodec

_COUNTED = ("cpu", "memory")

_RESIZABLE = ("cpu", "memory")

HINDRANCES_NAMED = 3
"""Most fields that a sentence names."""


def calculate(
    codec: RevisionCodec, old: ControllerRevision, new: ControllerRevision, *, gates: Gates, must_match: str = ""
) -> UpdateSpec | None:
    """Return the update spec, or None when the change is not possible in place. Cached per pair of revisions.

    `must_match` is an annotation that requires recreation if both revisions have it with different values.
    """
    if must_match and _differ(must_match, old, new):
        return None
    return _calculate(
        codec.data_of(old),
        codec.data_of(new),
        codec.label(new),
        gates.on("InPlaceUpdateEnvFromMetadata"),
        gates.on("InPlaceWorkloadVerticalScaling"),
    )


def _differ(annotation: str, old: ControllerRevision, new: ControllerRevision) -> bool:
    values = [revision.metadata.annotations.get(annotation) for revision in (old, new)]
    return None not in values and values[0] != values[1]


@lru_cache(maxsize=4096)
def _calculate(old: bytes, new: bytes, revision: str, env_from_meta: bool, resize: bool) -> UpdateSpec | None:
    if not old or not new:
        return None  # data without a valid template
    before, after = _template(old), _template(new)
    images: dict[str, str] = {}
    resources: dict[str, Json] = {}
    metadata: list[Difference] = []
    for difference in differences(before, after):
        if not _can_be_taken(difference, resize):
            return None
        match difference.path:
            case ("spec", "containers", int() as index, "image"):
                images[_container_name(before, index)] = cast("str", difference.value)
            case ("spec", "containers", int() as index, "resources", str() as side, str() as name):
                entries: Json = resources.setdefault(_container_name(before, index), {})
                entries.setdefault(side, {})[name] = difference.value
            case _:
                metadata.append(difference)
    if resources and qos_class(before["spec"]) != qos_class(after["spec"]):
        return None
    referenced = _referenced(after, metadata) if env_from_meta else {}
    return UpdateSpec(
        revision=revision,
        images=images,
        resources=resources,
        metadata_patch=_metadata_patch(before["metadata"], after["metadata"], referenced),
        ref_metadata=referenced,
        env_from_metadata=bool(referenced),
    )


def hindrances(before: Json, after: Json, *, gates: Gates) -> str:
    """Return a sentence fragment with the first few fields that cannot change in a running pod; empty if none.

    The pod templates are in the form in which revisions hold them.
    """
    resize = gates.on("InPlaceWorkloadVerticalScaling")
    paths = [one.path for one in differences(before, after) if not _can_be_taken(one, resize)]
    named = [path_text(("template", *path), {"template": after}) for path in paths[:HINDRANCES_NAMED]]
    more = f" and {len(paths) - len(named)} more" if len(paths) > len(named) else ""
    return f"{', '.join(named)}{more} cannot be changed in place" if named else ""


def hindrances_between(codec: RevisionCodec, old: ControllerRevision, new: ControllerRevision, gates: Gates) -> str:
    """Return `hindrances` between two revisions; empty if one has no valid template."""
    data = (codec.data_of(old), codec.data_of(new))
    return hindrances(_template(data[0]), _template(data[1]), gates=gates) if all(data) else ""


def _can_be_taken(difference: Difference, resize: bool) -> bool:
    match difference.path:
        case ("metadata", _, *_):
            return True
        case ("spec", "containers", int(), "image"):
            return difference.op == "replace"
        case ("spec", "containers", int(), "resources", str(), str()):
            return resize and _resizes(difference)
        case _:
            return False


def _template(data: bytes) -> Json:
    return msgspec.json.decode(data)["spec"]["template"]


def _container_name(template: Json, index: int) -> str:
    return template["spec"]["containers"][index]["name"]


def _resizes(difference: Difference) -> bool:
    side, name = difference.path[-2:]
    if difference.op != "replace" or side not in ("limits", "requests") or name not in _RESIZABLE:
        return False
    quantity.parse(str(difference.value))  # canonical data holds nothing else
    return True


def _referenced(template: Json, metadata: list[Difference]) -> dict[str, ContainerMeta]:
    """Return new values of single labels and annotations by the container that reads them."""
    changed: dict[Path, str] = {
        (*difference.path[1:],): difference.value
        for difference in metadata
        if len(difference.path) == 3 and difference.path[1] in ("labels", "annotations") and difference.op != "remove"
    }
    found: dict[str, ContainerMeta] = {}
    for container in msgspec.convert(template["spec"]["containers"], list[Container]):
        reads = {read for read in env_from_metadata(container).values() if read in changed}
        if reads:
            found[container.name] = ContainerMeta(
                labels={key: changed[kind, key] for kind, key in sorted(reads) if kind == "labels"},
                annotations={key: changed[kind, key] for kind, key in sorted(reads) if kind == "annotations"},
            )
    return found


def _metadata_patch(before: Json, after: Json, referenced: dict[str, ContainerMeta]) -> Json | None:
    """Return the patch of labels, annotations and finalizers, all of a template's metadata that pods get.

    A removed key is null.
    """
    patch: Json = {}
    for kind in ("labels", "annotations"):
        taken = {key for meta in referenced.values() for key in getattr(meta, kind)}
        changes = _key_changes(strings(before.get(kind)), strings(after.get(kind)))
        changes = {key: value for key, value in changes.items() if key not in taken}
        if changes:
            patch[kind] = changes
    return (patch | _finalizer_changes(sequence(before.get("finalizers")), sequence(after.get("finalizers")))) or None


def _key_changes(before: dict[str, str], after: dict[str, str]) -> dict[str, str | None]:
    removed: dict[str, str | None] = dict.fromkeys(key for key in before if key not in after)
    return removed | {key: value for key, value in after.items() if before.get(key) != value}


def _finalizer_changes(before: list[Any], after: list[Any]) -> Json:
    added = [name for name in after if name not in before]
    removed = [name for name in before if name not in after]
    changes: Json = {"finalizers": added} if added else {}
    return changes | ({"$deleteFromPrimitiveList/finalizers": removed} if removed else {})


def qos_class(spec: Json) -> str:
    """Return Guaranteed, Burstable or BestEffort, for a pod spec in canonical form.

    A pod with resources of its own gets its class from these alone.
    """
    if mapping(spec.get("resources")):
        return _class([spec])
    return _class([*mappings(spec.get("initContainers")), *mappings(spec.get("containers"))])


def _class(holders: list[Json]) -> str:
    requests: dict[str, Decimal] = {}
    limits: dict[str, Decimal] = {}
    guaranteed = True
    for holder in holders:
        resources = mapping(holder.get("resources"))
        limited = _amounts(mapping(resources.get("limits")))
        # A limit without a request is the request, too: the apiserver fills that in when the pod is created.
        requested = limited | _amounts(mapping(resources.get("requests")))
        guaranteed = guaranteed and len(limited) == len(_COUNTED)
        _add(limits, limited)
        _add(requests, requested)
    if not requests:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _amounts(entries: Json) -> dict[str, Decimal]:
    """Return the counted entries that are not zero."""
    amounts = {name: quantity.parse(str(entries.get(name, "0"))) for name in _COUNTED}
    return {name: amount for name, amount in amounts.items() if amount}


def _add(totals: dict[str, Decimal], amounts: dict[str, Decimal]) -> None:
    for name, amount in amounts.items():
        totals[name] = totals.get(name, Decimal(0)) + amount
