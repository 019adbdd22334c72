"""WorkloadSpread: its subsets, and the placement of its workload's pods."""

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.kinds.workloadspread.book import is_left_out, matched_of
from flotilla_common.api.kinds.workloadspread.targets import NUMBERED, SPREAD, GroupKind
from flotilla_common.api.kinds.workloadspread.types import (
    DELETION_COST,
    SCHEDULABLE,
    UNLIMITED,
    WORKLOAD_SPREAD,
    Subset,
    SubsetStatus,
    WorkloadSpread,
)
from flotilla_common.api.meta import controller_of, group_of, metadata_of
from flotilla_common.api.resources import Resource
from flotilla_common.kube.interface import Api
from flotilla_common.workload.causes import PodContext
from flotilla_insight.views import view_of
from flotilla_insight.views.kindview import KindView, PodQuestion, Related, Summary
from flotilla_insight.views.related import related_of

_COLUMNS = ("SUBSET", "LIMIT", "PODS", "LEFT", "CREATING", "DELETING", "SCHEDULABLE")


def summary(raw: bytes) -> Summary:
    """Describe the subsets, in the order in which they are filled.

    If versions of pods are counted separately, each version has its rows, too.
    """
    spread = msgspec.json.decode(raw, type=WorkloadSpread)
    target, status = spread.spec.target_ref, spread.status
    books = list(status.versioned_subset_statuses.items())
    total = status.subset_statuses
    if len(books) == 1:
        total = books[0][1]  # has more: pods that were admitted and are not visible yet
    headline = f"{sum(one.replicas for one in total)} pods of {target.kind} {target.name} are spread"
    rows = list(_rows(spread.spec.subsets, total))
    for version, book in books if len(books) > 1 else ():
        rows += _rows(spread.spec.subsets, book, f" of {version}")
    return Summary(headline, _COLUMNS, rows)


def _rows(subsets: Sequence[Subset], book: Sequence[SubsetStatus], suffix: str = "") -> Iterator[tuple[str, ...]]:
    known = {one.name: one for one in book}
    for subset in subsets:
        entry = known.get(subset.name, SubsetStatus(name=subset.name))
        limit = "none" if subset.max_replicas is None else str(subset.max_replicas)
        counts = (len(entry.creating_pods), len(entry.deleting_pods))
        yield (subset.name + suffix, limit, str(entry.replicas), _left(entry), *map(str, counts), _schedulable(entry))


def _left(entry: SubsetStatus) -> str:
    return "any" if entry.missing_replicas == UNLIMITED else str(entry.missing_replicas)


def _schedulable(entry: SubsetStatus) -> str:
    condition = next((one for one in entry.conditions if one.type == SCHEDULABLE), None)
    return "" if condition is None else f"{condition.status} ({condition.reason})"


async def _related(api: Api, raw: bytes, now: datetime) -> Related:
    """Read the pods of its workload, and why there are not more; empty for kinds that we do not serve."""
    spread = msgspec.json.decode(raw, type=WorkloadSpread)
    group, kind, name = spread.spec.target_ref.identity
    resource = _spread_kind(group, kind)
    if resource is not None:
        target = await found_or_none(api.get(resource, spread.metadata.namespace, name))
        if target is not None:
            return await related_of(api, view_of(resource), target, now)
    return Related(basis=PodContext(now=now))


def _spread_kind(group: str, kind: str) -> Resource | None:
    return next((one for one in SPREAD if (one.group, one.kind) == (group, kind)), None)


def _concerns(stored: Json, pod: Json) -> bool:
    matched = matched_of(strings(member(pod, "metadata").get("annotations")))
    mine, other = member(stored, "metadata"), member(pod, "metadata")
    return matched is not None and (matched.name, mine.get("namespace")) == (mine.get("name"), other.get("namespace"))


async def _about_pod(about: PodQuestion) -> Sequence[str]:
    """Explain the pod's subset, and its deletion cost."""
    owners = {owner async for owner in _owners(about.api, about.pod)}
    page = await found_or_none(about.api.list(WORKLOAD_SPREAD, about.pod.metadata.namespace))
    for item in page.items if page is not None else ():
        spread = msgspec.json.decode(item, type=WorkloadSpread)
        if spread.spec.target_ref.identity in owners:
            return [_placed(spread, about.pod)]
    return []


async def _owners(api: Api, pod: Pod) -> AsyncIterator[tuple[str, str, str]]:
    """Yield group, kind and name of the controllers above the pod, the nearest first."""
    meta = pod.metadata
    while (owner := controller_of(meta)) is not None:
        group = group_of(owner.api_version)
        yield group, owner.kind, owner.name
        resource = _spread_kind(group, owner.kind)
        raw = await found_or_none(api.get(resource, meta.namespace, owner.name)) if resource is not None else None
        if raw is None:
            return
        meta = metadata_of(raw)


def _placed(spread: WorkloadSpread, pod: Pod) -> str:
    name, annotations = spread.metadata.name, pod.metadata.annotations
    matched, cost = matched_of(annotations), annotations.get(DELETION_COST)
    then = f"; deletion cost {cost}: pods with the lowest are deleted first" if cost else ""
    if is_left_out(spread, pod.metadata):
        return f"WorkloadSpread {name} did not assign it: no subset had room when it was created{then}"
    if matched is None or matched.name != name:
        return f"WorkloadSpread {name} has no subset for it: none fits its node{then}"
    known = {one.name: one for one in spread.status.subset_statuses}
    subset = next((one for one in spread.spec.subsets if one.name == matched.subset), None)
    if subset is None:
        return f"WorkloadSpread {name} put it into subset {matched.subset}, which no longer exists{then}"
    limit = "any number of" if subset.max_replicas is None else f"at most {subset.max_replicas}"
    there = known.get(subset.name, SubsetStatus()).replicas
    words = f"subset {subset.name}, which takes {limit} pods and has {there}"
    return f"WorkloadSpread {name} put it into {words}: {_RULES[_kind(spread) in NUMBERED]}{then}"


_RULES = {
    True: "pods of StatefulSets are assigned by ordinal",
    False: "the first with room when it was created, or the one that fits its node",
}


def _kind(spread: WorkloadSpread) -> GroupKind:
    return spread.spec.target_ref.identity[:2]


VIEWS = (
    KindView(
        resource=WORKLOAD_SPREAD,
        summary=summary,
        related=_related,
        concerns=_concerns,
        about_pod=_about_pod,
    ),
)
