"""The final state of a UnitedDeployment, counted from the objects that exist (uniteddeployment.md §7, §9, §12)."""

from collections.abc import Collection, Iterator

import msgspec

from flotilla_common.api.documents import mappings, member, strings
from flotilla_common.api.kinds.uniteddeployment.types import (
    PATCH_ANNOTATION,
    RESERVED_LABEL,
    REVISION_LABEL,
    SUBSET_LABEL,
)
from flotilla_common.control.plan import Json
from flotilla_common.model.built_in import is_active
from flotilla_common.model.kubelet import is_ready
from tests.simulation.oracles.copies import controller
from tests.simulation.oracles.united import TEMPLATES, held, partition, subset, subsets


class FinalState(msgspec.Struct, frozen=True, kw_only=True):
    """The final objects of one UnitedDeployment."""

    united: Json
    children: Collection[Json]  # that it controls, of whatever kind
    pods: Collection[Json]  # of its namespace
    revisions: Collection[Json]  # that it controls
    stuck: bool = False  # not all pods are ready
    allocated: int | None = None  # replicas that subsets get, where that is not the total


def final_problems(final: FinalState) -> Iterator[str]:
    """Yield what is wrong with the final state."""
    yield from _wrong_children(final)
    for child in final.children:
        yield from (f"{child['metadata']['name']}: {text}" for text in _wrong_with(child, final))
    yield from _wrong_status(final)
    told = {member(final.united, "status").get(key) for key in ("currentRevision", "updatedRevision")}
    names = {one["metadata"]["name"] for one in final.revisions}
    if not told <= names:
        yield f"the status names revisions {sorted(map(str, told - names))}, which are not there"
    numbers = [one["revision"] for one in final.revisions]
    if len(numbers) != len(set(numbers)):
        yield f"revisions have the numbers {sorted(numbers)}"


def _wrong_children(final: FinalState) -> Iterator[str]:
    template = member(final.united, "spec", "template")
    kinds = {resource.kind + resource.group for resource, name in TEMPLATES.items() if name in template}
    found = [(child["kind"] + child["apiVersion"].rpartition("/")[0], subset(child)) for child in final.children]
    wanted = [(kind, name) for kind in kinds for name in subsets(final.united)]
    if sorted(found) != sorted(wanted):
        yield f"the workloads are {sorted(found)}, not {sorted(wanted)}"
    total = sum(child["spec"]["replicas"] for child in final.children)
    allocated = final.united["spec"]["replicas"] if final.allocated is None else final.allocated
    if total != allocated:
        yield f"the workloads have {total} replicas, not {allocated}"


def _wrong_with(child: Json, final: FinalState) -> Iterator[str]:
    united, name = final.united, subset(child)
    newest = member(united, "status").get("updatedRevision")
    for place in (child, child["spec"]["template"]):
        labels = strings(place["metadata"].get("labels"))
        if (labels.get(REVISION_LABEL), labels.get(SUBSET_LABEL)) != (newest, name):
            yield f"its labels are {labels}, not of {newest} and {name}"
    if (found := partition(child)) is not None and found != held(united, child):
        yield f"it holds {found} pods, not {held(united, child)}"
    patch = (
        next(one.get("patch") for one in _topology(united) if one["name"] == name) if name in subsets(united) else None
    )
    text = strings(child["metadata"].get("annotations")).get(PATCH_ANNOTATION)
    if (msgspec.json.decode(text) if text else None) != patch or text is None:
        yield f"it says that its patch is {text!r}, not {patch!r}"
    pods = list(_pods_of(child, final))
    if len(pods) != child["spec"]["replicas"]:
        yield f"it has {len(pods)} pods, not {child['spec']['replicas']}"
    updated = sum(_is_on(pod, newest) for pod in pods)
    most = child["spec"]["replicas"] - (partition(child) or 0)
    if not final.stuck and updated < most:
        yield f"{updated} of its pods are on {newest}, {most} are to be"


def _wrong_status(final: FinalState) -> Iterator[str]:
    united, status = final.united, member(final.united, "status")
    pods = [pod for child in final.children for pod in _pods_of(child, final)]
    newest = [pod for pod in pods if _is_on(pod, status.get("updatedRevision"))]
    reserved = sum(strings(pod["metadata"].get("labels")).get(RESERVED_LABEL) == "true" for pod in pods)
    counts = {
        "observedGeneration": united["metadata"]["generation"],
        "replicas": len(pods) - reserved,
        "readyReplicas": sum(map(is_ready, pods)),
        "updatedReplicas": len(newest),
        "updatedReadyReplicas": sum(map(is_ready, newest)),
        "reservedPods": reserved,
    }
    told = {key: status.get(key, 0) for key in counts}
    if told != counts:
        yield f"the status says {told}, not {counts}"
    wanted = {
        subset(child): {
            "replicas": child["spec"]["replicas"],
            "readyReplicas": sum(map(is_ready, _pods_of(child, final))),
            "partition": held(united, child),
        }
        for child in final.children
    }
    found = {
        one["name"]: {key: one.get(key, 0) for key in ("replicas", "readyReplicas", "partition")}
        for one in mappings(status.get("subsetStatuses"))
    }
    if found != wanted:
        yield f"subsets are said to be {found}, not {wanted}"
    done = status.get("currentRevision") == status.get("updatedRevision")
    if not done and counts["updatedReadyReplicas"] >= counts["replicas"]:
        yield f"the current revision is {status.get('currentRevision')}, the newest {status.get('updatedRevision')}"


def _topology(united: Json) -> list[Json]:
    return mappings(member(united, "spec", "topology").get("subsets"))


def _pods_of(child: Json, final: FinalState) -> Iterator[Json]:
    """Yield the child's active pods; those of a Deployment are found by their labels."""
    for pod in final.pods:
        own = controller(pod) == child["metadata"]["uid"]
        selected = member(child, "spec", "selector", "matchLabels").items() <= pod["metadata"].get("labels", {}).items()
        if is_active(pod) and (own or (child["kind"] == "Deployment" and selected)):
            yield pod


def _is_on(pod: Json, revision: object) -> bool:
    return strings(pod["metadata"].get("labels")).get(REVISION_LABEL) == revision
