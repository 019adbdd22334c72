"""Sorts the pods of a StatefulSet by what they are: one fast pass that everything else builds on (statefulset.md §4.2,
§4.12).

A rollout over thousands of pods is planned again for every few pods that change, so the pass must cost next to nothing
for the others. What a pod says about itself is boiled down to a small tuple of `Traits` once per version of the pod
and kept with it; a pass sorts pods into groups of equal traits, and looks closer only at those that need it.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import NamedTuple

import msgspec

from flotilla_common.api import keys
from flotilla_common.api.core import Pod
from flotilla_common.api.meta import controller_of
from flotilla_common.api.moments import later
from flotilla_common.api.selectors import Selector
from flotilla_common.gates import Gates
from flotilla_common.workload.inplace import completed
from flotilla_common.workload.lifecycle import NORMAL
from flotilla_common.workload.predicates import is_serving, is_settled
from flotilla_statefulset.ordinals import Ordinals, ordinal_of

_MEMO, _ORDINAL = "statefulset_traits", "statefulset_ordinal"

FINISHED = ("Failed", "Succeeded")


class Traits(NamedTuple):
    """What matters about a pod, but for its name and for how long it has been ready."""

    controller: str  # uid of the controller, empty without one
    revision: str  # the full name of its revision
    phase: str
    state: str  # lifecycle state
    ready: bool  # Running and Ready, not in the middle of an in-place update
    terminating: bool
    specified: bool  # carries the specified-delete label
    named: bool  # carries its own name as a label
    settled: bool  # refreshing it cannot have anything to do

    @property
    def usable(self) -> bool:
        """Available, but for minReadySeconds; terminating pods can be."""
        return self.ready and self.state in ("", NORMAL)

    @property
    def healthy(self) -> bool:
        """Usable, and not on its way out."""
        return self.usable and not self.terminating

    @property
    def finished(self) -> bool:
        """It ran to its end, or failed: it never comes back."""
        return self.phase in FINISHED


def traits(pod: Pod) -> Traits:
    """The pod's traits, computed once per version of the pod."""
    memo: Traits | None = pod.memo.get(_MEMO)
    if memo is None:
        memo = pod.memo[_MEMO] = _traits(pod)
    return memo


def _traits(pod: Pod) -> Traits:
    meta = pod.metadata
    controller = controller_of(meta)
    return Traits(
        controller=controller.uid if controller else "",
        revision=pod.revision,
        phase=pod.status.phase,
        state=pod.state,
        ready=is_serving(pod),
        terminating=meta.deletion_timestamp is not None,
        specified=keys.SPECIFIED_DELETE_LABEL in meta.labels,
        named=meta.labels.get(keys.POD_NAME_LABEL) == meta.name,
        settled=is_settled(pod),
    )


class Counts(msgspec.Struct, kw_only=True):
    """Pods that the status counts (§5.1)."""

    replicas: int = 0
    ready: int = 0
    available: int = 0
    current: int = 0
    updated: int = 0
    updated_ready: int = 0
    updated_available: int = 0


MOST_MISSING = 10_000
"""Missing ordinals that one pass looks at. It creates a few hundred pods; what spec.replicas says costs no more."""


class Pods(msgspec.Struct, kw_only=True):
    """The pods of one StatefulSet by what they are. Numbers are ordinals."""

    by_ordinal: dict[int, Pod] = {}  # all that are claimed, in no order
    revisions: set[str] = set()  # that one of these is on
    missing: list[int] = []  # wanted and not there, ascending: so many of them as a pass may look at
    missing_count: int = 0  # all of them
    condemned: list[int] = []  # there and not wanted, descending
    strays: list[Pod] = []  # controlled by the set, but not its own by labels or name
    notable: set[int] = set()  # wanted ones that are not simply there, named and available
    unavailable: set[int] = set()  # wanted ones that do not serve: missing, unhealthy, updating, or not ready for long
    waiting: dict[int, datetime] = {}  # when these become available by waiting
    outdated: list[int] = []  # wanted ones that are there and not on the update revision, or unfit, descending
    bare: set[int] = set()  # such ones that nobody makes anew, since pods are updated in place only
    unfit: set[int] = set()  # wanted ones on the update revision that lack a volume which a new pod gets
    specified: list[int] = []  # wanted ones that somebody wants deleted, descending
    unsettled: list[int] = []  # that a refresh has to look at, ascending
    counts: Counts = msgspec.field(default_factory=Counts)

    @property
    def unseen(self) -> int:
        """Count the missing ones that this pass does not look at; they are unavailable, too."""
        return self.missing_count - len(self.missing)


class Criteria(NamedTuple):
    """What the sorting depends on besides the pods."""

    uid: str
    name: str
    selector: Selector
    ordinals: Ordinals
    update_revision: str
    current_revision: str
    min_ready_seconds: int
    gates: Gates
    now: datetime


def sort_pods(owned: Iterable[Pod], adopted: Iterable[Pod], criteria: Criteria) -> Pods:
    """Sort the pods that refer to the set, and those that it takes in."""
    found = Pods()
    groups: dict[Traits, dict[int, Pod]] = defaultdict(dict)
    for pod in owned:
        kind = pod.memo.get(_MEMO) or traits(pod)
        if kind.controller != criteria.uid:
            continue
        ordinal = _ordinal(pod, criteria.name)
        if ordinal >= 0 and criteria.selector.matches(pod.metadata.labels):
            groups[kind][ordinal] = pod
        else:
            found.strays.append(pod)
    for pod in adopted:
        groups[traits(pod)][_ordinal(pod, criteria.name)] = pod
    for kind, members in groups.items():
        _enter(found, kind, members, criteria)
    absent = (one for one in criteria.ordinals if one not in found.by_ordinal)
    found.missing = list(islice(absent, MOST_MISSING))
    found.missing_count = len(criteria.ordinals) - len(found.by_ordinal) + len(found.condemned)
    found.unavailable.update(found.missing)
    for descending in (found.condemned, found.outdated, found.specified):
        descending.sort(reverse=True)
    found.unsettled.sort()
    return found


def _ordinal(pod: Pod, set_name: str) -> int:
    """The pod's ordinal, remembered with it: neither its name nor that of its set ever changes."""
    ordinal: int | None = pod.memo.get(_ORDINAL)
    if ordinal is None:
        ordinal = pod.memo[_ORDINAL] = ordinal_of(pod.metadata.name, set_name)
    return ordinal


def _enter(found: Pods, kind: Traits, members: dict[int, Pod], criteria: Criteria) -> None:
    """Enter one group of pods of equal traits."""
    found.by_ordinal |= members
    found.revisions.add(kind.revision)
    wanted = criteria.ordinals.among(members)
    if len(wanted) != len(members):
        found.condemned += members.keys() - wanted
    late = _late(found, kind, members, criteria)
    _count(found.counts, kind, len(members), len(members) - len(late), criteria)
    if not kind.settled and not kind.terminating and not kind.finished:
        found.unsettled += members
    if kind.healthy and not kind.settled:
        late |= {one for one, pod in members.items() if not completed(pod, criteria.gates)}
    unavailable = [one for one in wanted if one in late] if kind.healthy else wanted
    found.unavailable.update(unavailable)
    found.notable.update(unavailable if kind.named and not kind.finished else wanted)
    if kind.revision != criteria.update_revision:
        found.outdated += wanted
    if kind.specified:
        found.specified += wanted


def _late(found: Pods, kind: Traits, members: dict[int, Pod], criteria: Criteria) -> set[int]:
    """Those that are not available, or not ready for long enough (§4.12)."""
    if not kind.usable:
        return set(members)
    if criteria.min_ready_seconds <= 0:
        return set()
    seconds = criteria.min_ready_seconds
    threshold = later(criteria.now, -seconds)
    late = {one: pod for one, pod in members.items() if pod.ready_since is None or pod.ready_since > threshold}
    found.waiting |= {one: later(pod.ready_since or criteria.now, seconds) for one, pod in late.items()}
    return set(late)


def _count(counts: Counts, kind: Traits, total: int, available: int, criteria: Criteria) -> None:
    created = total if kind.phase else 0
    ready = total if kind.ready else 0
    counts.replicas += created
    counts.ready += ready
    counts.available += available
    if kind.revision == criteria.current_revision and not kind.terminating:
        counts.current += created
    if kind.revision == criteria.update_revision:
        counts.updated_ready += ready
        counts.updated_available += available
        if not kind.terminating:
            counts.updated += created
