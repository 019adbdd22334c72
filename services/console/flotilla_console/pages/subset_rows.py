"""The rows of subsets: their pods, their rules, and why they are short of pods."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.kinds.uniteddeployment.types import SUBSET_LABEL, UNITED_DEPLOYMENT
from flotilla_common.api.kinds.workloadspread.book import matched_of
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD
from flotilla_common.api.meta import group_of
from flotilla_common.api.resources import POD, Resource
from flotilla_common.workload.budget import is_ready
from flotilla_console import paths
from flotilla_console.blocks.types import Badge, Bar, Column, Link, Part, Row, Span, Spans, Tone, spans
from flotilla_console.model.kinds import KINDS
from flotilla_console.model.objects import Stored, read
from flotilla_console.model.sight import LIST, Sight
from flotilla_console.model.workload import Workload
from flotilla_console.pages.memo import Memo
from flotilla_console.pages.parts import commas, link
from flotilla_console.pages.subsets import Subset, subsets_of_spread, subsets_of_united

SPREADING = (UNITED_DEPLOYMENT, WORKLOAD_SPREAD)

MOST_PODS = 3
"""Pods that are named in a row."""

COLUMNS = (
    Column("subset", "Subset", sortable=True),
    Column("state", "State", sortable=True),
    Column("of", "Of", sortable=True),
    Column("namespace", "Namespace", sortable=True),
    Column("pods", "Pods", sortable=True),
    Column("rules", "Rules"),
    Column("where", "Workload"),
    Column("why", "Why"),
)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A subset with the object that has it."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    index: int
    subset: Subset
    target: Json = {}  # of a WorkloadSpread

    @property
    def state(self) -> tuple[str, Tone]:
        """Return the state by the object's status."""
        if self.subset.trouble:
            return "blocked", "bad"
        if self.subset.is_gone:
            return "leaving", "warn"
        return ("short", "busy") if self.subset.lacks else ("fine", "ok")


_RANKS = ("blocked", "short", "leaving", "fine")

ORDERS: Mapping[str, Callable[[Entry], tuple[str | float, ...]]] = {
    "state": lambda one: (_RANKS.index(one.state[0]), one.namespace, one.name, one.index),
    "subset": lambda one: (one.subset.name, one.namespace, one.name),
    "of": lambda one: (one.name, one.namespace, one.index),
    "namespace": lambda one: (one.namespace, one.name, one.index),
    "pods": lambda one: (one.subset.replicas, one.namespace, one.name, one.index),
}


def entries(resource: Resource, stored: Stored) -> Sequence[Entry]:
    """Return the subsets of a UnitedDeployment or WorkloadSpread."""
    return _ENTRIES[resource].of(stored)


def _entries(resource: Resource, stored: Stored) -> Sequence[Entry]:
    subsets_of = subsets_of_united if resource == UNITED_DEPLOYMENT else subsets_of_spread
    namespace, name = stored.metadata.key
    spec = read(stored.spec)
    return [
        Entry(
            resource=resource,
            namespace=namespace,
            name=name,
            uid=stored.metadata.uid,
            index=index,
            subset=subset,
            target=member(spec, "targetRef"),
        )
        for index, subset in enumerate(subsets_of(spec, read(stored.status)))
    ]


_ENTRIES = {resource: Memo(partial(_entries, resource)) for resource in SPREADING}


class _Place(msgspec.Struct, frozen=True):
    """The workload that has the pods of a subset, and these pods; None if they may not be seen."""

    workload: Workload | None = None
    pods: Sequence[Pod] | None = None

    @property
    def unready(self) -> Sequence[Pod]:
        """Return the pods that are not ready."""
        return [pod for pod in self.pods or () if not is_ready(pod)]


class _Places(msgspec.Struct, frozen=True):
    """The places of an object's subsets."""

    known: Mapping[str, _Place]
    instead: _Place = _Place()  # of a subset that is not among them

    def of(self, subset: Subset) -> _Place:
        """Return the place of a subset."""
        return self.known.get(subset.name, self.instead)


def rows(sight: Sight, window: Sequence[Entry]) -> tuple[Row, ...]:
    """Return the rows of a window. Pods are read for them only, once for each object."""
    places: dict[str, _Places] = {}
    for one in window:
        if one.uid not in places:
            places[one.uid] = _children(sight, one) if one.resource == UNITED_DEPLOYMENT else _targets(sight, one)
    return tuple(_row(one, places[one.uid].of(one.subset)) for one in window)


def _children(sight: Sight, one: Entry) -> _Places:
    """Return the workloads that a UnitedDeployment made for its subsets."""
    above = sight.workload(one.resource.group, one.resource.plural, one.namespace, one.name)
    children = sight.children_of(above) if above is not None else ()
    may_see = sight.may(LIST, POD, one.namespace)
    return _Places(
        {
            child.metadata.labels.get(SUBSET_LABEL, ""): _Place(child, sight.pods_of(child) if may_see else None)
            for child in children
        }
    )


def _targets(sight: Sight, one: Entry) -> _Places:
    """Return the workload whose pods a WorkloadSpread places, with those of each subset."""
    target = _target(sight, one)
    if target is None or not sight.may(LIST, POD, one.namespace):
        return _Places({}, _Place(target))
    pods: dict[str, list[Pod]] = {}
    for pod in sight.pods_of(target):
        mark = matched_of(pod.metadata.annotations)
        if mark is not None and mark.name == one.name:
            pods.setdefault(mark.subset, []).append(pod)
    return _Places({name: _Place(target, members) for name, members in pods.items()}, _Place(target, ()))


def _target(sight: Sight, one: Entry) -> Workload | None:
    group, kind = group_of(text(one.target.get("apiVersion"))), text(one.target.get("kind"))
    for known in KINDS.values():
        if (known.resource.group, known.resource.kind) == (group, kind):
            return sight.workload(group, known.resource.plural, one.namespace, text(one.target.get("name")))
    return None


def _row(one: Entry, place: _Place) -> Row:
    word, tone = one.state
    above = paths.workload(one.resource.group, one.resource.plural, one.namespace, one.name)
    return Row(
        key=f"{one.resource.id}/{one.namespace}/{one.name}/{one.index}",
        cells=(
            spans(one.subset.name),
            spans(Badge(word, tone)),
            spans(f"{one.resource.kind} ", Link(one.name, above)),
            spans(one.namespace),
            spans(_bar(one.subset, place)),
            spans("; ".join(one.subset.rules)),
            spans(link(place.workload)) if place.workload is not None else (),
            _why(one, place),
        ),
        tone=tone,
    )


def _bar(subset: Subset, place: _Place) -> Bar:
    """Return the pods of a subset: ready, not ready, missing, and for how many more there is room."""
    exist, ready = _counts(subset, place)
    missing = max(subset.replicas - exist, 0)
    room = max((subset.limit or 0) - subset.replicas, 0)
    parts = (
        Part("placed" if ready is None else "not ready", exist - (ready or 0), "idle" if ready is None else "busy"),
        Part("missing", missing, "bad"),
        Part("free", room, "idle"),
    )
    if ready is not None:
        parts = (Part("ready", ready, "ok"), *parts)
    most = f", at most {subset.limit}" if subset.limit is not None else ""
    label = f"{subset.replicas} pods{most}" if ready is None else f"{ready} of {subset.replicas} ready{most}"
    return Bar(label, tuple(part for part in parts if part.count > 0), exist + missing + room)


def _counts(subset: Subset, place: _Place) -> tuple[int, int | None]:
    """Return how many pods exist and are ready: those that may be seen, else by the status."""
    if place.pods is not None:
        return len(place.pods), len(place.pods) - len(place.unready)
    exist = max(subset.replicas, 0)
    return exist, None if subset.ready is None else min(max(subset.ready, 0), exist)


def _why(one: Entry, place: _Place) -> Spans:
    """Return why the subset is short: its own condition, what its workload waits for, and its unready pods."""
    pieces: list[Span | str] = [one.subset.trouble] if one.subset.trouble else []
    child = place.workload if one.resource == UNITED_DEPLOYMENT else None
    if child is not None and child.verdict.state != "fine":
        pieces.append(child.verdict.text or child.verdict.code)
    unready = place.unready
    pieces += [Link(pod.metadata.name, paths.pod(*pod.metadata.key)) for pod in unready[:MOST_PODS]]
    more = len(unready) - MOST_PODS
    if more > 0:
        pieces.append(f"{more} more")
    return (*commas(pieces), *spans(" not ready" if unready else ""))
