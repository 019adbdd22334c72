"""WorkloadSpread: its subsets, and where a pod of its workload went."""

from collections.abc import Sequence

import msgspec

from flotilla_cli.views.kindview import KindView, PodQuery, PodQuestion, Summary
from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.kinds.workloadspread.book import matched_of
from flotilla_common.api.kinds.workloadspread.types import (
    DELETION_COST,
    SCHEDULABLE,
    UNLIMITED,
    WORKLOAD_SPREAD,
    SubsetStatus,
    WorkloadSpread,
)
from flotilla_common.api.meta import LabelSelector


def summary(raw: bytes) -> Summary:
    """Tell of the subsets, in the order in which they are filled."""
    spread = msgspec.json.decode(raw, type=WorkloadSpread)
    target, known = spread.spec.target_ref, {one.name: one for one in spread.status.subset_statuses}
    pods = sum(one.replicas for one in known.values())
    headline = f"{pods} pods of {target.kind} {target.name} are spread"
    limits = {one.name: one.max_replicas for one in spread.spec.subsets}
    rows = [_row(known.get(name, SubsetStatus(name=name)), limit) for name, limit in limits.items()]
    return Summary(headline, ("SUBSET", "LIMIT", "PODS", "LEFT", "SCHEDULABLE"), rows)


def _row(subset: SubsetStatus, limit: int | str | None) -> tuple[str, ...]:
    condition = next((one for one in subset.conditions if one.type == SCHEDULABLE), None)
    left = "any" if subset.missing_replicas == UNLIMITED else str(subset.missing_replicas)
    shown = "" if condition is None else f"{condition.status} ({condition.reason})"
    return subset.name, "none" if limit is None else str(limit), str(subset.replicas), left, shown


def _pods(raw: bytes) -> PodQuery:
    name = msgspec.json.decode(raw, type=WorkloadSpread).metadata.name
    return PodQuery(selector=LabelSelector(), keep=lambda pod: _is_matched(pod, name))


def _is_matched(pod: Pod, name: str) -> bool:
    matched = matched_of(pod.metadata.annotations)
    return matched is not None and matched.name == name


def _concerns(stored: Json, pod: Json) -> bool:
    matched = matched_of(strings(member(pod, "metadata").get("annotations")))
    mine, other = member(stored, "metadata"), member(pod, "metadata")
    return matched is not None and (matched.name, mine.get("namespace")) == (mine.get("name"), other.get("namespace"))


async def _about_pod(about: PodQuestion) -> Sequence[str]:
    annotations = about.pod.metadata.annotations
    matched = matched_of(annotations)
    if matched is None:
        return []
    cost = annotations.get(DELETION_COST)
    then = f", with deletion cost {cost}: of its workload's pods those with the lowest go first" if cost else ""
    return [f"WorkloadSpread {matched.name} put it into subset {matched.subset}{then}"]


VIEW = KindView(
    resource=WORKLOAD_SPREAD,
    summary=summary,
    pods=_pods,
    concerns=_concerns,
    about_pod=_about_pod,
    guards_removal=True,
)
