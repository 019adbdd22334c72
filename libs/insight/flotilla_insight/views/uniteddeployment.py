"""UnitedDeployment: its subsets, the workload of each, and the subset of a pod."""

from collections.abc import Iterator, Sequence

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, member
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.kinds.uniteddeployment.types import (
    ABSENT,
    RESERVED_LABEL,
    REVISION_LABEL,
    SCHEDULABLE,
    SUBSET_LABEL,
    UNITED_DEPLOYMENT,
    Subset,
    SubsetStatus,
    UnitedDeployment,
)
from flotilla_common.api.meta import OwnerReference, controller_of, group_of, metadata_of
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, REPLICA_SET
from flotilla_common.api.scheduling import NodeSelectorTerm
from flotilla_common.control.text import pods_word
from flotilla_common.kube.interface import Api
from flotilla_insight.views.kindview import KindView, PodQuestion, Summary

_CHILDREN = (CLONE_SET, STATEFUL_SET, BUILT_IN_STATEFUL_SET, DEPLOYMENT)
_ABOVE = {(one.group, one.kind): one for one in (*_CHILDREN, REPLICA_SET)}
"""The kinds of owners between a pod and its UnitedDeployment."""


def summary(raw: bytes) -> Summary:
    """Describe the subsets, in the order in which they are filled."""
    united = msgspec.json.decode(raw, type=UnitedDeployment)
    spec, status = united.spec, united.status
    headline = f"{status.ready_replicas} of {spec.replicas} pods are ready, {status.updated_replicas} are updated"
    if status.reserved_pods:
        headline += f", {status.reserved_pods} more are reserved"
    known = {subset.name: subset for subset in status.subset_statuses}
    asked = {subset.name: _asked(subset) for subset in spec.topology.subsets}
    asked |= {name: "gone" for name in known if name not in asked}
    rows = [_row(known.get(name, SubsetStatus(name=name)), share) for name, share in asked.items()]
    return Summary(headline, ("SUBSET", "ASKED", "REPLICAS", "READY", "PARTITION", "RESERVED", "SCHEDULABLE"), rows)


def _asked(subset: Subset) -> str:
    """Return the number of pods that the subset demands."""
    if subset.replicas is not None:
        return str(subset.replicas)
    least, most = subset.min_replicas or 0, subset.max_replicas
    if most is None:
        return f"{least} or more" if least else "the rest"
    return f"{least} to {most}"


def _row(subset: SubsetStatus, asked: str) -> tuple[str, ...]:
    condition = next((one for one in subset.conditions if one.type == SCHEDULABLE), None)
    numbers = (subset.replicas, subset.ready_replicas, subset.partition, subset.reserved_pods)
    shown = "" if condition is None else f"{condition.status} ({condition.reason})"
    return (subset.name, asked, *map(str, numbers), shown)


async def _about_pod(about: PodQuestion) -> Sequence[str]:
    """Explain the pod's subset and its revision."""
    name = about.pod.metadata.labels.get(SUBSET_LABEL)
    owner = await _owner(about.api, about.pod) if name is not None else None
    if name is None or owner is None:
        return []
    raw = await found_or_none(about.api.get(UNITED_DEPLOYMENT, about.pod.metadata.namespace, owner.name))
    return (
        list(_subset_lines(msgspec.json.decode(raw, type=UnitedDeployment), name, about.pod)) if raw is not None else []
    )


async def _owner(api: Api, pod: Pod) -> OwnerReference | None:
    """Return the UnitedDeployment above the pod, or None."""
    meta = pod.metadata
    while (owner := controller_of(meta)) is not None:
        group = group_of(owner.api_version)
        if (group, owner.kind) == (UNITED_DEPLOYMENT.group, UNITED_DEPLOYMENT.kind):
            return owner
        resource = _ABOVE.get((group, owner.kind))
        raw = await found_or_none(api.get(resource, meta.namespace, owner.name)) if resource is not None else None
        if raw is None:
            return None
        meta = metadata_of(raw)
    return None


def _subset_lines(united: UnitedDeployment, name: str, pod: Pod) -> Iterator[str]:
    spec, status, labels = united.spec, united.status, pod.metadata.labels
    begin = f"UnitedDeployment {united.metadata.name}"
    subset = next((one for one in spec.topology.subsets if one.name == name), None)
    allocated = next((one.replicas for one in status.subset_statuses if one.name == name), 0)
    if subset is None:
        yield f"{begin} has no subset {name} any more: the pod is deleted once others serve"
        return
    where = "".join(f", on nodes with {words}" for words in _terms(subset))
    yield f"{begin} gives subset {name} {allocated} of {spec.replicas} pods (it asks for {_asked(subset)}){where}"
    if labels.get(RESERVED_LABEL) == "true":
        yield "it is reserved: another pod replaces it until it has been ready long enough"
    revision = labels.get(REVISION_LABEL, "")
    if status.updated_revision and revision != status.updated_revision:
        held = spec.update_strategy.manual_update.partitions.get(name, 0)
        kept = f": the subset keeps {pods_word(held)} on old ones" if held else ", and it is not updated yet"
        yield f"it is on revision {revision or 'unknown'}, not on {status.updated_revision}{kept}"


def _terms(subset: Subset) -> Iterator[str]:
    """Yield the subset's node requirements in words; nothing if they cannot be decoded."""
    if subset.node_selector_term == ABSENT:
        return
    try:
        term = read_json(subset.node_selector_term, NodeSelectorTerm)
    except ValueError:
        return
    for one in term.match_expressions:
        values = f" ({', '.join(one.values)})" if one.values else ""
        yield f"{one.key} {one.operator}{values}"


def _update_strategy(stored: Json) -> Json:
    """Return the update strategy of the workloads that it creates."""
    templates = member(stored, "spec", "template")
    return member(templates, next(iter(templates), ""), "spec", "updateStrategy")


def _progress(spec: Json, status: Json) -> str:
    wanted, ready, updated = spec.get("replicas", 1), status.get("readyReplicas", 0), status.get("updatedReplicas", 0)
    return "" if ready == updated == wanted else f"{ready} of {wanted} pods ready, {updated} updated"


VIEWS = (
    KindView(
        resource=UNITED_DEPLOYMENT,
        summary=summary,
        children=_CHILDREN,
        about_pod=_about_pod,
        update_strategy=_update_strategy,
        has_unknown_name=lambda made: made.kind != "ControllerRevision",  # names depend on its next version
        progress=_progress,
    ),
)
