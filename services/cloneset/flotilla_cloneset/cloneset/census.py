"""Who is who among the pods of a CloneSet: one fast pass that everything else builds on.

A rollout over thousands of pods is planned again for every few pods that change, so the pass must cost next to
nothing for the others. What a pod says about itself is boiled down to a small tuple of `Traits` once per version of
the pod and kept with it; the census then only sorts pods into groups of equal traits, and all classification happens
per group, of which there are a dozen whatever the number of pods.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from flotilla_cloneset.cloneset.numbers import Side
from flotilla_cloneset.cloneset.status import Counts
from flotilla_common.api import keys
from flotilla_common.api.core import Pod
from flotilla_common.api.meta import controller_of
from flotilla_common.api.selectors import Selector
from flotilla_common.workload.lifecycle import NORMAL, PREPARING_DELETE, PREPARING_UPDATE
from flotilla_common.workload.revisions import short_hash

_MEMO = "cloneset_traits"


class Traits(NamedTuple):
    """What matters about a pod, but for its name and for how long it has been ready."""

    controller: str  # uid of the controller, empty without one
    active: bool
    revision: str  # short hash of the revision that the pod's label names
    state: str  # lifecycle state
    ready: bool  # counts as ready: Running, Ready, not in the middle of an in-place update
    specified: bool  # carries the specified-delete label
    settled: bool  # refreshing it cannot have anything to do

    @property
    def serviceable(self) -> bool:
        """Available, but for minReadySeconds (cloneset.md §4.3)."""
        return self.ready and self.state in ("", NORMAL)


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
        active=pod.active,
        revision=short_hash(pod.revision),
        state=pod.state,
        ready=pod.serving,
        specified=keys.SPECIFIED_DELETE_LABEL in meta.labels,
        settled=pod.settled and keys.TEMPLATE_HASH_LABEL in meta.labels,
    )


class Census(msgspec.Struct, kw_only=True):
    """The pods of one CloneSet by what they are. Pods keep the order of the listing within each group."""

    active: list[Pod] = []
    inactive: list[Pod] = []  # terminating or finished
    strays: list[Pod] = []  # controlled by the CloneSet, but their labels left its selector
    orphans: list[Pod] = []  # refer to the CloneSet, match its selector, and have no controller
    new: list[Pod] = []  # on the update revision, by label
    old: list[Pod] = []
    preparing_update: list[Pod] = []  # among the old ones: wait for a hook before their update
    preparing_delete: list[Pod] = []
    specified: list[Pod] = []  # the user or a recreate update wants them deleted
    specified_uids: set[str] = set()
    unavailable: set[str] = set()  # uids of active pods that are not available
    unsettled: list[Pod] = []  # active pods that a refresh has to look at
    new_side: Side = Side()
    old_side: Side = Side()
    preparing_update_side: Side = Side()
    counts: Counts = Counts()
    available_at: datetime | None = None  # when the next ready pod becomes available by waiting

    @property
    def planned(self) -> set[str]:
        """Uids of the pods that are to be deleted: specified, or already PreparingDelete."""
        return self.specified_uids | {pod.metadata.uid for pod in self.preparing_delete}

    def sides(self, preparing_update_is_new: bool) -> tuple[Side, Side]:
        """(new, old) while updating; while scaling, pods in PreparingUpdate may count as new."""
        if preparing_update_is_new:
            moved = self.preparing_update_side
            return _shift(self.new_side, moved, 1), _shift(self.old_side, moved, -1)
        return self.new_side, self.old_side

    def groups(self, preparing_update_is_new: bool) -> tuple[Sequence[Pod], Sequence[Pod]]:
        """(new, old) pods under the same rule as `sides`."""
        if preparing_update_is_new and self.preparing_update:
            moved = {pod.metadata.uid for pod in self.preparing_update}
            return self.new + self.preparing_update, [pod for pod in self.old if pod.metadata.uid not in moved]
        return self.new, self.old


def _shift(side: Side, by: Side, sign: int) -> Side:
    return Side(
        side.all + sign * by.all,
        side.preparing_delete,  # a pod prepares one thing at a time
        side.deleting + sign * by.deleting,
        side.unavailable + sign * by.unavailable,
    )


class Question(NamedTuple):
    """What the census has to know about the CloneSet."""

    uid: str
    selector: Selector
    update_revision: str
    min_ready_seconds: int
    pods_to_delete: frozenset[str]
    now: datetime


def take(pods: Iterable[Pod], ask: Question) -> Census:
    """Classify all pods that refer to the CloneSet."""
    groups: dict[Traits, list[Pod]] = defaultdict(list)
    for pod in pods:
        groups[pod.memo.get(_MEMO) or traits(pod)].append(pod)
    census = Census()
    tally = _Tally(short_hash(ask.update_revision))
    for kind, members in groups.items():
        if kind.controller != ask.uid:
            if not kind.controller:
                census.orphans += [pod for pod in members if kind.active and ask.selector.matches(pod.metadata.labels)]
            continue
        matching = [pod for pod in members if ask.selector.matches(pod.metadata.labels)]
        if len(matching) != len(members):
            census.strays += [pod for pod in members if not ask.selector.matches(pod.metadata.labels)]
        if kind.active:
            _file(census, tally, kind, matching, ask)
        else:
            census.inactive += matching
    tally.close(census)
    return census


class _Tally:
    """Running counts of a census."""

    def __init__(self, update_hash: str) -> None:
        self.update_hash = update_hash
        self.sides = {"new": [0, 0, 0, 0], "old": [0, 0, 0, 0], "preparing_update": [0, 0, 0, 0]}
        self.counts: dict[str, int] = defaultdict(int)

    def close(self, census: Census) -> None:
        census.new_side = Side(*self.sides["new"])
        census.old_side = Side(*self.sides["old"])
        census.preparing_update_side = Side(*self.sides["preparing_update"])
        census.counts = Counts(**self.counts)


def _file(census: Census, tally: _Tally, kind: Traits, pods: list[Pod], ask: Question) -> None:
    """Enter one group of active pods of equal traits."""
    if not pods:
        return
    updated = kind.revision == tally.update_hash
    unavailable = _unavailable(census, kind, pods, ask)
    specified = _specified(kind, pods, ask.pods_to_delete)
    census.active += pods
    (census.new if updated else census.old).extend(pods)
    census.unavailable |= unavailable
    census.specified += specified
    uids = {pod.metadata.uid for pod in specified}
    census.specified_uids |= uids
    if not kind.settled:
        census.unsettled += pods
    entry = [len(pods), 0, len(specified), len(unavailable - uids)]
    if kind.state == PREPARING_DELETE:
        census.preparing_delete += pods
        entry = [len(pods), len(pods), 0, 0]
    sides = ["new" if updated else "old"]
    if kind.state == PREPARING_UPDATE and not updated:
        census.preparing_update += pods
        sides.append("preparing_update")
    for side in sides:
        tally.sides[side] = [a + b for a, b in zip(tally.sides[side], entry, strict=True)]
    _count(tally.counts, "", kind, len(pods), len(unavailable))
    if updated:
        _count(tally.counts, "updated", kind, len(pods), len(unavailable))


def _count(counts: dict[str, int], prefix: str, kind: Traits, total: int, unavailable: int) -> None:
    counts[prefix or "replicas"] += total
    counts[f"{prefix}_ready".lstrip("_")] += total if kind.ready else 0
    counts[f"{prefix}_available".lstrip("_")] += total - unavailable


def _unavailable(census: Census, kind: Traits, pods: list[Pod], ask: Question) -> set[str]:
    if not kind.serviceable:
        return {pod.metadata.uid for pod in pods}
    if ask.min_ready_seconds <= 0:
        return set()
    delay = timedelta(seconds=ask.min_ready_seconds)
    threshold = ask.now - delay
    waiting = [pod for pod in pods if pod.ready_since is None or pod.ready_since >= threshold]
    times = [pod.ready_since for pod in waiting if pod.ready_since is not None]
    if times:
        # A millisecond on top: available means strictly later than ready time + minReadySeconds.
        next_at = min(times) + delay + timedelta(milliseconds=1)
        census.available_at = min(next_at, census.available_at or next_at)
    return {pod.metadata.uid for pod in waiting}


def _specified(kind: Traits, pods: list[Pod], listed: frozenset[str]) -> list[Pod]:
    if kind.specified:
        return pods
    return [pod for pod in pods if pod.metadata.name in listed] if listed else []
