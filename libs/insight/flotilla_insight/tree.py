"""The data of `get`: pure functions that turn objects into a workload's tree, or another object's card."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_common.api.documents import Json, mappings, member, text
from flotilla_common.api.keys import IN_PLACE_READY
from flotilla_common.api.meta import IntOrString, later, metadata_of
from flotilla_common.workload.causes import grouped
from flotilla_common.workload.placement import node_of
from flotilla_common.workload.predicates import is_serving, max_restarts
from flotilla_insight.published import Why
from flotilla_insight.views.kindview import KindView
from flotilla_insight.workload import Numbers, OrderKey, PodFacts, Workload, pod_waits_for, waits_for


class PodView(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One pod."""

    name: str
    state: str  # the phase, or a more specific reason: Terminating, ImagePullBackOff …
    lifecycle: str  # the lifecycle state; empty when the pod has none
    ready: str  # containers that are ready, of all: 1/2
    serving: bool  # ready, and not held back by an in-place update
    updating: bool  # held back by an in-place update
    restarts: int
    created: datetime | None
    node: str
    images: tuple[str, ...]
    waiting_for: str = ""
    available_at: datetime | None = None  # when minReadySeconds are over, if there are any


class RevisionView(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One revision and its pods, those that need attention first."""

    name: str
    number: int
    update: bool
    current: bool
    images: tuple[str, ...]
    pods: tuple[PodView, ...]

    @property
    def serving(self) -> int:
        """Return the number of its serving pods."""
        return sum(pod.serving for pod in self.pods)


class SetView(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The whole tree."""

    kind: str
    namespace: str
    name: str
    created: datetime | None
    deleting: bool
    paused: bool
    partition: IntOrString  # as it is written
    by_node: bool  # pods are known by their nodes
    numbers: Numbers
    details: tuple[str, ...]  # specific to the kind
    causes: tuple[str, ...]  # why pods do not serve
    waiting_for: tuple[str, ...]
    told_by: str  # bus: the service's own reasons; status: computed from the object
    revisions: tuple[RevisionView, ...]
    older_revisions: int
    children: "Children" = msgspec.UNSET


class Card(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An object without revisions: a headline, what it waits for, and its parts as a table."""

    kind: str
    namespace: str
    name: str
    created: datetime | None
    deleting: bool
    headline: str
    waiting_for: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    children: "Children" = msgspec.UNSET


Children = tuple[SetView | Card, ...] | msgspec.UnsetType
"""The display of the objects that it owns; unset for a kind that owns none with pods."""


def card(kind: KindView, raw: bytes, why: Why | None, children: Sequence[SetView | Card] = ()) -> Card:
    """Return the card of an object. Reasons for an earlier object of its name are left out."""
    meta, summary = metadata_of(raw), kind.summary(raw)
    return Card(
        kind=kind.resource.kind,
        namespace=meta.namespace,
        name=meta.name,
        created=meta.creation_timestamp,
        deleting=meta.deletion_timestamp is not None,
        headline=summary.headline,
        waiting_for=why.sentences if why is not None and why.uid == meta.uid else (),
        columns=summary.columns,
        rows=tuple(summary.rows),
        children=tuple(children) if kind.children else msgspec.UNSET,
    )


def view(
    workload: Workload,
    pods: Sequence[PodFacts],
    revisions: Sequence[ControllerRevision],
    why: Why | None,
    children: Sequence[SetView | Card] = (),
) -> SetView:
    """Return the tree of a set. Pods of a deleted revision are grouped by their label."""
    meta = workload.metadata
    fresh = why if why is not None and why.generation >= meta.generation else None
    known = [(facts.pod.metadata.name, cause) for facts in pods if (cause := facts.cause) is not None]
    sentences = fresh.sentences_except({cause.code for _, cause in known}) if fresh else ()
    shown = _group(workload, pods, revisions)
    return SetView(
        kind=workload.kind,
        namespace=meta.namespace,
        name=meta.name,
        created=meta.creation_timestamp,
        deleting=meta.deletion_timestamp is not None,
        paused=workload.paused,
        partition=workload.partition,
        by_node=workload.by_node,
        numbers=workload.numbers,
        details=workload.details,
        causes=tuple(group.sentence for group in grouped(known)),
        waiting_for=sentences or tuple(reason.sentence for reason in waits_for(workload)),
        told_by="bus" if sentences else "status",
        revisions=shown,
        older_revisions=len(revisions) - sum(any(one.name == it.metadata.name for one in shown) for it in revisions),
        children=tuple(children) or msgspec.UNSET,
    )


def _group(
    workload: Workload, pods: Sequence[PodFacts], revisions: Sequence[ControllerRevision]
) -> tuple[RevisionView, ...]:
    """Return the relevant revisions, newest first: the update one, the current one, and those with pods."""
    groups: dict[str, list[PodFacts]] = {}
    for facts in pods:
        label = workload.revision_of(facts.pod)
        owner = next((one.metadata.name for one in revisions if workload.belongs(label, one.metadata.name)), label)
        groups.setdefault(owner, []).append(facts)
    by_name = {revision.metadata.name: revision for revision in revisions}
    names = {workload.update_revision, workload.current_revision} & by_name.keys() | groups.keys()
    shown = [_revision_view(workload, name, by_name.get(name), groups.get(name, ())) for name in names]
    return tuple(sorted(shown, key=lambda one: (-one.number, one.name)))


def _revision_view(
    workload: Workload, name: str, revision: ControllerRevision | None, pods: Iterable[PodFacts]
) -> RevisionView:
    views = sorted(pods, key=lambda facts: (is_serving(facts.pod), *_order(workload, facts.pod)))
    return RevisionView(
        name=name,
        number=revision.revision if revision else 0,
        update=name == workload.update_revision,
        current=name == workload.current_revision,
        images=_images(revision),
        pods=tuple(_pod_view(facts, workload.min_ready_seconds) for facts in views),
    )


def _order(workload: Workload, pod: Pod) -> tuple[OrderKey, str]:
    return workload.order(node_of(pod) if workload.by_node else pod.metadata.name), pod.metadata.name


def _images(revision: ControllerRevision | None) -> tuple[str, ...]:
    if revision is None:
        return ()
    data: Json = msgspec.json.decode(revision.data) or {}
    containers = member(data, "spec", "template", "spec").get("containers")
    return tuple(text(container.get("image")) for container in mappings(containers))


def _pod_view(facts: PodFacts, min_ready_seconds: int) -> PodView:
    pod = facts.pod
    statuses = pod.status.container_statuses
    since = pod.ready_since if min_ready_seconds > 0 else None
    return PodView(
        name=pod.metadata.name,
        state=_state(facts),
        lifecycle=pod.state,
        ready=f"{sum(status.ready for status in statuses)}/{len(pod.spec.containers)}",
        serving=is_serving(pod) and pod.metadata.deletion_timestamp is None,
        updating=pod.conditions[IN_PLACE_READY].status != "True" if IN_PLACE_READY in pod.conditions else False,
        restarts=max_restarts(statuses),
        created=pod.metadata.creation_timestamp,
        node=node_of(pod),
        images=tuple(container.image for container in pod.spec.containers),
        waiting_for=pod_waits_for(facts),
        available_at=None if since is None else later(since, min_ready_seconds),
    )


def _state(facts: PodFacts) -> str:
    if facts.pod.metadata.deletion_timestamp is not None:
        return "Terminating"
    return facts.reason or facts.pod.status.phase or "Pending"
