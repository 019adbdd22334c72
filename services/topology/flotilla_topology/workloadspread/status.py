"""Computes the status of a WorkloadSpread, its books of places, and explains it (workloadspread.md §8.5 and §8.6).

The reasons explain why pods are where they are: first the workload, then each subset.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.workloadspread.book import AHEAD, limit_of, matched_of, token_of
from flotilla_common.api.kinds.workloadspread.targets import JOBS, group_kind
from flotilla_common.api.kinds.workloadspread.types import (
    FAKE_SUBSET,
    PLACE,
    SCHEDULABLE,
    UNLIMITED,
    Subset,
    SubsetStatus,
    WorkloadSpread,
    WorkloadSpreadStatus,
)
from flotilla_common.api.meta import Condition, Moment, later
from flotilla_common.control.plan import Event, State
from flotilla_common.control.planbuilder import Deadlines, PlanBuilder
from flotilla_common.control.text import first_names, pods_word
from flotilla_topology.unscheduled import is_timed_out
from flotilla_topology.workloadspread.snapshot import Target, WorkloadSpreadSnapshot
from flotilla_topology.workloadspread.sorting import Sorted

CREATING_SECONDS = 30
"""The time after which an admitted pod that has not been seen loses its place."""

DELETING_SECONDS = 15
"""The time after which a pod whose deletion was admitted but that still exists takes its place again."""

MARKED_SECONDS = 300
"""The time during which a subset with unschedulable pods gets no more of them."""

STUCK, SUFFICIENT = "PodUnschedulable", "Sufficient"
"""The reasons of the condition."""


class Books(msgspec.Struct, frozen=True, kw_only=True):
    """The new status, its events, and the unschedulable pods of each subset."""

    status: WorkloadSpreadStatus
    events: Sequence[Event]
    stuck: Mapping[str, Sequence[Pod]]  # by subset


def books_of(spread: WorkloadSpread, pods: Sorted, replicas: int, now: datetime, deadlines: Deadlines) -> Books:
    """Compute the status. Raises ValueError if a limit cannot be read."""
    writer = _Writer(spread, replicas, now, deadlines)
    subsets = spread.spec.subsets
    totals = [
        writer.entry(index, subset, pods.of(subset.name), _of(spread.status.subset_statuses, subset.name))
        for index, subset in enumerate(subsets)
    ]
    writer.is_total = False
    versioned: dict[str, list[SubsetStatus]] = {}
    for version in dict.fromkeys([*pods.by_version, *spread.status.versioned_subset_statuses]):
        stored = spread.status.versioned_subset_statuses.get(version, [])
        of_version = pods.by_version.get(version, {})
        book = [
            writer.entry(index, subset, of_version.get(subset.name, ()), _of(stored, subset.name) or _opened(total))
            for index, (subset, total) in enumerate(zip(subsets, totals, strict=True))
        ]
        if of_version or any(entry.replicas or entry.creating_pods or entry.deleting_pods for entry in book):
            versioned[version] = book
    return Books(
        status=WorkloadSpreadStatus(
            observed_generation=spread.metadata.generation,
            subset_statuses=totals,
            versioned_subset_statuses=versioned,
        ),
        events=writer.events,
        stuck=writer.stuck,
    )


def _of(book: Sequence[SubsetStatus], name: str) -> SubsetStatus | None:
    return next((entry for entry in book if entry.name == name), None)


def _opened(total: SubsetStatus) -> SubsetStatus:
    """Return the first entry of a new book: the subset's schedulability holds for every version."""
    return SubsetStatus(name=total.name, conditions=total.conditions)


class _Writer:
    """Writes the entries of one WorkloadSpread."""

    def __init__(self, spread: WorkloadSpread, replicas: int, now: datetime, deadlines: Deadlines) -> None:
        self._spread = spread
        self._replicas = replicas
        self._now = now
        self._deadlines = deadlines
        self.is_total = True
        self.events: list[Event] = []
        self.stuck: dict[str, list[Pod]] = {}

    def entry(self, index: int, subset: Subset, pods: Sequence[Pod], stored: SubsetStatus | None) -> SubsetStatus:
        """Return the entry of a subset, over all versions or in the book of one."""
        before = stored or SubsetStatus(name=subset.name)
        active = [pod for pod in pods if pod.active]
        creating = self._creating(before.creating_pods, pods)
        deleting = self._deleting(before.deleting_pods, active)
        limit = limit_of(subset, self._replicas)
        missing = UNLIMITED
        if limit != UNLIMITED:
            missing = max(0, min(limit - len(active) + len(deleting) - len(creating), limit))
        return SubsetStatus(
            name=subset.name,
            replicas=len(active),
            missing_replicas=missing,
            creating_pods=creating,
            deleting_pods=deleting,
            conditions=self._conditions(index, subset, active, before),
        )

    def _creating(self, stored: Mapping[str, Moment], pods: Sequence[Pod]) -> dict[str, Moment]:
        seen = {key for pod in pods for key in keys_of(pod)} if stored else set[str]()
        waiting = {key: since for key, since in stored.items() if token_of(key) not in seen}
        return self._unexpired(waiting, CREATING_SECONDS, "CreatePodFailed", "created")

    def _deleting(self, stored: Mapping[str, Moment], active: Sequence[Pod]) -> dict[str, Moment]:
        names = {pod.metadata.name for pod in active} if stored else set[str]()
        waiting = {name: since for name, since in stored.items() if name in names}
        return self._unexpired(waiting, DELETING_SECONDS, "DeletePodFailed", "deleted")

    def _unexpired(self, stored: Mapping[str, Moment], seconds: int, reason: str, verb: str) -> dict[str, Moment]:
        kept: dict[str, Moment] = {}
        for name, since in stored.items():
            if self._deadlines.passed(later(since, seconds), self._now):
                if name.startswith(AHEAD):  # its webhook is gone, and no pod ever took it
                    continue
                place = f"{self._spread.metadata.namespace}/{name}"
                message = f"Pod {place} was expected to be {verb} but it wasn't"
                self.events.append(Event(reason, message, warning=True))
            else:
                kept[name] = since
        return kept

    def _conditions(self, index: int, subset: Subset, active: Sequence[Pod], before: SubsetStatus) -> list[Condition]:
        patience = self._spread.spec.patience
        if not patience:
            return []
        if index == len(self._spread.spec.subsets) - 1:
            return [self._condition(before, schedulable=True)]
        stuck = [pod for pod in active if is_timed_out(pod, patience, self._now, self._deadlines)]
        if self.is_total:
            self.stuck[subset.name] = stuck
        if stuck:
            return [self._condition(before, schedulable=False)]
        known = next((condition for condition in before.conditions if condition.type == SCHEDULABLE), None)
        if known is not None and known.status == "False" and known.last_transition_time is not None:
            if not self._deadlines.passed(later(known.last_transition_time, MARKED_SECONDS), self._now):
                return [known]
            if self.is_total:
                self.events.append(self._recovered(subset))
        return [self._condition(before, schedulable=True)]

    def _recovered(self, subset: Subset) -> Event:
        meta = self._spread.metadata
        begin = f"Subset {subset.name} of WorkloadSpread {meta.namespace}/{meta.name}"
        return Event("RecoverSchedulable", f"{begin} is recovered from unschedulable to schedulable")

    def _condition(self, before: SubsetStatus, *, schedulable: bool) -> Condition:
        status = "True" if schedulable else "False"
        known = next((one for one in before.conditions if (one.type, one.status) == (SCHEDULABLE, status)), None)
        if known is not None:
            return known
        return Condition(
            type=SCHEDULABLE,
            status=status,
            last_transition_time=self._now.replace(microsecond=0),
            reason=SUFFICIENT if schedulable else STUCK,
        )


def keys_of(pod: Pod) -> Iterator[str]:
    """Yield the keys that a pod may have in `creatingPods`."""
    matched = matched_of(pod.metadata.annotations)
    yield (matched.uid if matched is not None else "") or pod.metadata.name
    if PLACE in pod.metadata.annotations:
        yield pod.metadata.annotations[PLACE]


def explain(snapshot: WorkloadSpreadSnapshot, pods: Sorted, books: Books, builder: PlanBuilder) -> None:
    """Add reasons for missing pods and for subsets that do not grow. `snapshot` has only the pods that are spread."""
    for text in pods.unreadable:
        builder.reason(State.STUCK, "InvalidSubset", text)
    reference = snapshot.spread.spec.target_ref
    if snapshot.target is None:
        builder.reason(State.WAITING, "WaitingForTarget", f"{reference.kind} {reference.name} does not exist")
        return
    there, wanted = sum(pod.active for pod in snapshot.pods), snapshot.target.replicas
    if there < wanted and group_kind(reference) != JOBS:  # the last pods of a Job are fewer
        text = f"{reference.kind} {reference.name} has {there} of {pods_word(wanted)}"
        builder.reason(State.WAITING, "WaitingForPods", text, [reference.name])
    for subset in snapshot.spread.spec.subsets:
        _explain_unschedulable(subset.name, books, builder)
        _explain_room(subset, snapshot.target, pods, builder)
    unspread = [pod for pod in pods.of(FAKE_SUBSET) if pod.active]
    if unspread:
        text = f"{pods_word(len(unspread))} without a subset: deleted first"
        builder.reason(State.NOTE, "PodsWithoutSubset", text, unspread)
    left_out = [pod for pod in pods.left_out if pod.active]
    if left_out:
        text = f"{pods_word(len(left_out))} left alone: no subset had room"
        builder.reason(State.NOTE, "PodsLeftOut", text, left_out)


def _explain_unschedulable(subset: str, books: Books, builder: PlanBuilder) -> None:
    stuck = books.stuck.get(subset, ())
    entry = next(entry for entry in books.status.subset_statuses if entry.name == subset)
    if stuck:
        names = ", ".join(first_names(stuck))
        text = f"subset {subset}: no node for {pods_word(len(stuck))}: {names}; replaced in other subsets"
        builder.reason(State.STUCK, "SubsetUnschedulable", text, stuck, symptom=True)
    elif not entry.schedulable:
        text = f"subset {subset} gets no more pods for now: it had unschedulable pods"
        builder.reason(State.NOTE, "SubsetUnschedulable", text)


def _explain_room(subset: Subset, target: Target, pods: Sorted, builder: PlanBuilder) -> None:
    limit, there = limit_of(subset, target.replicas), sum(pod.active for pod in pods.of(subset.name))
    if limit == UNLIMITED or there < limit:
        return
    if there > limit:
        text = f"subset {subset.name} has {pods_word(there - limit)} more than its {limit}: deleted first"
        builder.reason(State.NOTE, "SubsetOverfull", text)
    elif limit:
        text = f"subset {subset.name} has its {pods_word(limit)}: others go to later subsets"
        builder.reason(State.NOTE, "SubsetFull", text)
