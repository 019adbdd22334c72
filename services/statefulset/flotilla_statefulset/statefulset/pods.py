"""Classifies the pods of a StatefulSet in one fast pass, on which every later step builds (statefulset.md §4.2, §4.12).

A rollout over thousands of pods is planned again for every few pods that change, so the pass must cost next to nothing
for the others. Each version of a pod is reduced once to a small tuple of `Traits`, which is cached on the pod; a pass
groups pods of equal traits, and looks closer only at the pods that need it.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import NamedTuple

import msgspec

from flotilla_common.api import keys
from flotilla_common.api.core import Pod
from flotilla_common.api.meta import controller_of, later
from flotilla_common.api.selectors import Selector
from flotilla_common.gates import Gates
from flotilla_common.workload.inplace import completed
from flotilla_common.workload.lifecycle import NORMAL
from flotilla_common.workload.predicates import is_serving, is_settled, remembered
from flotilla_statefulset.ordinals import Ordinals, ordinal_of

_MEMO = f"{__name__}.traits"  # the key that `remembered` uses: read without a call per pod
_ORDINAL = "statefulset_ordinal"

FINISHED = ("Failed", "Succeeded")


class Traits(NamedTuple):
    """The properties of a pod that decide its class, except its name and how long it has been ready."""

    controller: str  # uid of the controller, empty without one
    revision: str  # the full name of its revision
    phase: str
    state: str  # lifecycle state
    ready: bool  # Running and Ready, not in the middle of an in-place update
    terminating: bool
    specified: bool  # carries the specified-delete label
    named: bool  # carries its own name as a label
    settled: bool  # a refresh would change nothing

    @property
    def usable(self) -> bool:
        """Report whether the pod is available, apart from minReadySeconds. Terminating pods can be."""
        return self.ready and self.state in ("", NORMAL)

    @property
    def healthy(self) -> bool:
        """Report whether the pod is usable and not terminating."""
        return self.usable and not self.terminating

    @property
    def finished(self) -> bool:
        """Report whether the pod has succeeded or failed, and never runs again."""
        return self.phase in FINISHED


@remembered
def traits(pod: Pod) -> Traits:
    """Return the pod's traits, computed once per version of the pod."""
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
    """The pods that the status counts (§5.1)."""

    replicas: int = 0
    ready: int = 0
    available: int = 0
    current: int = 0
    updated: int = 0
    updated_ready: int = 0
    updated_available: int = 0


# A pass creates a few hundred pods; this bounds its cost for any spec.replicas.
MOST_MISSING = 10_000
"""The number of missing ordinals that one pass looks at."""


class Pods(msgspec.Struct, kw_only=True):
    """The pods of one StatefulSet by class. Numbers are ordinals."""

    by_ordinal: dict[int, Pod] = {}  # all claimed pods, unordered
    revisions: set[str] = set()  # the revisions of these pods
    missing: list[int] = []  # wanted and absent, ascending, at most MOST_MISSING
    missing_count: int = 0  # the full number
    condemned: list[int] = []  # present and unwanted, descending
    strays: list[Pod] = []  # controlled by the set, but not its own by labels or name
    notable: set[int] = set()  # wanted pods that are not simply running, named and available
    unavailable: set[int] = set()  # wanted pods that do not serve: missing, unhealthy, updating, or not ready for long
    waiting: dict[int, datetime] = {}  # when these reach minReadySeconds
    outdated: list[int] = []  # wanted pods not on the update revision, or unfit, descending
    bare: set[int] = set()  # unfit pods that are not recreated, since updates are in place only
    unfit: set[int] = set()  # wanted pods on the update revision that lack a volume which a new pod gets
    specified: list[int] = []  # wanted pods whose deletion is requested, descending
    unsettled: list[int] = []  # pods that may need a refresh, ascending
    counts: Counts = msgspec.field(default_factory=Counts)

    @property
    def unseen(self) -> int:
        """The number of missing pods that this pass does not look at; they are unavailable, too."""
        return self.missing_count - len(self.missing)


class Criteria(NamedTuple):
    """The inputs of the classification besides the pods."""

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
    """Classify the pods that refer to the set, and the pods that it adopts."""
    result = Pods()
    groups: dict[Traits, dict[int, Pod]] = defaultdict(dict)
    for pod in owned:
        kind = pod.memo.get(_MEMO) or traits(pod)
        if kind.controller != criteria.uid:
            continue
        ordinal = _ordinal(pod, criteria.name)
        if ordinal >= 0 and criteria.selector.matches(pod.metadata.labels):
            groups[kind][ordinal] = pod
        else:
            result.strays.append(pod)
    for pod in adopted:
        groups[traits(pod)][_ordinal(pod, criteria.name)] = pod
    for kind, members in groups.items():
        _enter(result, kind, members, criteria)
    absent = (ordinal for ordinal in criteria.ordinals if ordinal not in result.by_ordinal)
    result.missing = list(islice(absent, MOST_MISSING))
    result.missing_count = len(criteria.ordinals) - len(result.by_ordinal) + len(result.condemned)
    result.unavailable.update(result.missing)
    for descending in (result.condemned, result.outdated, result.specified):
        descending.sort(reverse=True)
    result.unsettled.sort()
    return result


def _ordinal(pod: Pod, set_name: str) -> int:
    """Return the pod's ordinal, cached on it: neither its name nor that of its set ever changes."""
    ordinal: int | None = pod.memo.get(_ORDINAL)
    if ordinal is None:
        ordinal = pod.memo[_ORDINAL] = ordinal_of(pod.metadata.name, set_name)
    return ordinal


def _enter(result: Pods, kind: Traits, members: dict[int, Pod], criteria: Criteria) -> None:
    """Enter one group of pods of equal traits."""
    result.by_ordinal |= members
    result.revisions.add(kind.revision)
    wanted = criteria.ordinals.among(members)
    if len(wanted) != len(members):
        result.condemned += members.keys() - wanted
    late = _late(result, kind, members, criteria)
    _count(result.counts, kind, len(members), len(members) - len(late), criteria)
    if not kind.settled and not kind.terminating and not kind.finished:
        result.unsettled += members
    if kind.healthy and not kind.settled:
        late |= {ordinal for ordinal, pod in members.items() if not completed(pod, criteria.gates)}
    unavailable = [ordinal for ordinal in wanted if ordinal in late] if kind.healthy else wanted
    result.unavailable.update(unavailable)
    result.notable.update(unavailable if kind.named and not kind.finished else wanted)
    if kind.revision != criteria.update_revision:
        result.outdated += wanted
    if kind.specified:
        result.specified += wanted


def _late(result: Pods, kind: Traits, members: dict[int, Pod], criteria: Criteria) -> set[int]:
    """Return the members that are not usable, or not ready for long enough (§4.12)."""
    if not kind.usable:
        return set(members)
    if criteria.min_ready_seconds <= 0:
        return set()
    seconds = criteria.min_ready_seconds
    threshold = later(criteria.now, -seconds)
    late = {ordinal: pod for ordinal, pod in members.items() if pod.ready_since is None or pod.ready_since > threshold}
    result.waiting |= {ordinal: later(pod.ready_since or criteria.now, seconds) for ordinal, pod in late.items()}
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
