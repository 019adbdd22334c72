"""Classifies the pods of a CloneSet in one fast pass, on which every later step builds.

A rollout over thousands of pods is planned again for every few pods that change, so the pass must cost next to nothing
for the others. Each version of a pod is reduced once to a small tuple of `Traits`, which is cached on the pod; a pass
only groups pods of equal traits and classifies each group as a whole. There are about a dozen groups, however many
pods.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

import msgspec

from flotilla_cloneset.cloneset.numbers import Counts, Side
from flotilla_common.api import keys
from flotilla_common.api.core import Pod
from flotilla_common.api.meta import controller_of, later
from flotilla_common.api.selectors import Selector
from flotilla_common.workload.causes import LOOKED_AT
from flotilla_common.workload.lifecycle import NORMAL, PREPARING_DELETE, PREPARING_UPDATE
from flotilla_common.workload.predicates import is_serving, is_settled, remembered
from flotilla_common.workload.revision_codec import short_hash

_MEMO = f"{__name__}.traits"  # the key that `remembered` uses: read without a call per pod


class Traits(NamedTuple):
    """The properties of a pod that decide its class, except its name and how long it has been ready."""

    controller: str  # uid of the controller, empty without one
    active: bool
    revision: str  # short hash of the revision that the pod's label names
    state: str  # lifecycle state
    ready: bool  # counts as ready: Running, Ready, not in the middle of an in-place update
    specified: bool  # carries the specified-delete label
    settled: bool  # a refresh would change nothing

    @property
    def serviceable(self) -> bool:
        """Report whether the pod is available, apart from minReadySeconds (cloneset.md §4.3)."""
        return self.ready and self.state in ("", NORMAL)


@remembered
def traits(pod: Pod) -> Traits:
    """Return the pod's traits, computed once per version of the pod."""
    meta = pod.metadata
    controller = controller_of(meta)
    return Traits(
        controller=controller.uid if controller else "",
        active=pod.active,
        revision=short_hash(pod.revision),
        state=pod.state,
        ready=is_serving(pod),
        specified=keys.SPECIFIED_DELETE_LABEL in meta.labels,
        settled=is_settled(pod) and keys.TEMPLATE_HASH_LABEL in meta.labels,
    )


class Classification(msgspec.Struct, kw_only=True):
    """The pods of one CloneSet by class. Within each group, pods keep the order of the listing."""

    active: list[Pod] = []
    inactive: list[Pod] = []  # terminating or finished
    strays: list[Pod] = []  # controlled by the CloneSet, but their labels left its selector
    orphans: list[Pod] = []  # refer to the CloneSet, match its selector, and have no controller
    new: list[Pod] = []  # on the update revision, by label
    old: list[Pod] = []
    preparing_update: list[Pod] = []  # subset of `old` that waits for a hook before the update
    preparing_delete: list[Pod] = []
    specified: list[Pod] = []  # the user or a recreate update requests their deletion
    specified_uids: set[str] = set()
    unavailable: set[str] = set()  # uids of active pods that are not available
    first_unavailable: list[Pod] = []  # a sample of each group of unavailable pods, for diagnosis
    unsettled: list[Pod] = []  # active pods that may need a refresh
    new_side: Side = Side()
    old_side: Side = Side()
    preparing_update_side: Side = Side()
    counts: Counts = Counts()
    available_at: datetime | None = None  # when the next ready pod reaches minReadySeconds

    @property
    def planned(self) -> set[str]:
        """Uids of the pods to be deleted: specified, or already PreparingDelete."""
        return self.specified_uids | {pod.metadata.uid for pod in self.preparing_delete}

    def sides(self, preparing_update_is_new: bool) -> tuple[Side, Side]:
        """Return (new, old) sides; while scaling, pods in PreparingUpdate may count as new."""
        if preparing_update_is_new:
            moved = self.preparing_update_side
            return self.new_side + moved, self.old_side - moved
        return self.new_side, self.old_side

    def groups(self, preparing_update_is_new: bool) -> tuple[Sequence[Pod], Sequence[Pod]]:
        """Return the (new, old) pods under the same rule as `sides`."""
        if preparing_update_is_new and self.preparing_update:
            moved = {pod.metadata.uid for pod in self.preparing_update}
            return self.new + self.preparing_update, [pod for pod in self.old if pod.metadata.uid not in moved]
        return self.new, self.old


class Criteria(NamedTuple):
    """The inputs of the classification besides the pods."""

    uid: str
    selector: Selector
    update_revision: str
    min_ready_seconds: int
    pods_to_delete: frozenset[str]
    now: datetime


def classify(pods: Iterable[Pod], criteria: Criteria) -> Classification:
    """Classify all pods that refer to the CloneSet."""
    groups: dict[Traits, list[Pod]] = defaultdict(list)
    for pod in pods:
        groups[pod.memo.get(_MEMO) or traits(pod)].append(pod)
    result = Classification()
    update_hash = short_hash(criteria.update_revision)
    for kind, members in groups.items():
        if kind.controller != criteria.uid:
            if kind.active and not kind.controller:
                result.orphans += [pod for pod in members if criteria.selector.matches(pod.metadata.labels)]
            continue
        matching = [pod for pod in members if criteria.selector.matches(pod.metadata.labels)]
        if len(matching) != len(members):
            result.strays += [pod for pod in members if not criteria.selector.matches(pod.metadata.labels)]
        if not kind.active:
            result.inactive += matching
        elif matching:
            _enter(result, kind, matching, criteria, updated=kind.revision == update_hash)
    return result


def _enter(result: Classification, kind: Traits, pods: list[Pod], criteria: Criteria, *, updated: bool) -> None:
    """Enter one group of active pods of equal traits."""
    unavailable = _unavailable(result, kind, pods, criteria)
    specified = _specified(kind, pods, criteria.pods_to_delete)
    uids = {pod.metadata.uid for pod in specified}
    result.active += pods
    (result.new if updated else result.old).extend(pods)
    result.unavailable |= unavailable
    if unavailable:
        result.first_unavailable += islice((pod for pod in pods if pod.metadata.uid in unavailable), LOOKED_AT)
    result.specified += specified
    result.specified_uids |= uids
    if not kind.settled:
        result.unsettled += pods
    side = Side(all=len(pods), deleting=len(specified), unavailable=len(unavailable - uids))
    if kind.state == PREPARING_DELETE:
        result.preparing_delete += pods
        side = Side(all=len(pods), preparing_delete=len(pods))
    if updated:
        result.new_side += side
    else:
        result.old_side += side
        if kind.state == PREPARING_UPDATE:
            result.preparing_update += pods
            result.preparing_update_side += side
    result.counts += _counts(kind, len(pods), len(pods) - len(unavailable), updated=updated)


def _counts(kind: Traits, total: int, available: int, *, updated: bool) -> Counts:
    ready = total if kind.ready else 0
    return Counts(
        replicas=total,
        ready=ready,
        available=available,
        updated=total if updated else 0,
        updated_ready=ready if updated else 0,
        updated_available=available if updated else 0,
    )


def _unavailable(result: Classification, kind: Traits, pods: list[Pod], criteria: Criteria) -> set[str]:
    if not kind.serviceable:
        return {pod.metadata.uid for pod in pods}
    if criteria.min_ready_seconds <= 0:
        return set()
    seconds = criteria.min_ready_seconds
    threshold = later(criteria.now, -seconds)
    waiting = [pod for pod in pods if pod.ready_since is None or pod.ready_since >= threshold]
    times = [pod.ready_since for pod in waiting if pod.ready_since is not None]
    if times:
        # A millisecond on top: available means strictly later than ready time + minReadySeconds.
        next_at = later(later(min(times), seconds), 0.001)
        result.available_at = min(next_at, result.available_at or next_at)
    return {pod.metadata.uid for pod in waiting}


def _specified(kind: Traits, pods: list[Pod], listed: frozenset[str]) -> list[Pod]:
    if kind.specified:
        return pods
    return [pod for pod in pods if pod.metadata.name in listed] if listed else []
