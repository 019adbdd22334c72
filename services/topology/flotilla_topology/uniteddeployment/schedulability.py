"""Finds subsets with unschedulable pods, and reserved pods (uniteddeployment.md §10 and §11)."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.uniteddeployment.types import RESERVED_LABEL, SCHEDULABLE, AdaptiveStrategy
from flotilla_common.api.meta import Condition, later
from flotilla_common.control.planbuilder import Deadlines
from flotilla_topology.uniteddeployment.children import Child, is_on
from flotilla_topology.unscheduled import is_timed_out, is_unscheduled

RESCHEDULED, RECOVERED, CREATED = "reschedule", "recover", "created"
"""The reasons of the condition."""

JOINED = "newly-created subsets in reservation strategy"
GROWN = "subset just recovered scaled up"
"""The messages of the condition while the pods to be tried first do not exist yet."""


class Patience(msgspec.Struct, frozen=True):
    """The times of the adaptive settings, in seconds."""

    critical: int = 30  # how long a pod may be unschedulable
    marked: int = 300  # how long a subset stays marked; in reservation mode, how long a pod has to be ready

    @classmethod
    def of(cls, settings: AdaptiveStrategy) -> "Patience":
        """Return the times of the settings, or their defaults."""
        critical, marked = settings.reschedule_critical_seconds, settings.unschedulable_duration
        return cls(
            cls.critical if critical is None else max(critical, 0),
            cls.marked if marked is None else max(marked, 0),
        )


class Schedulability(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking the pods of one child."""

    unschedulable: bool = False
    marked: bool = False  # unschedulable before, according to the stored condition
    condition: Condition | None = None  # the condition to store; None: the subset was never unschedulable
    waiting: Sequence[Pod] = ()  # pods that have been unschedulable for too long
    recovered: bool = False  # in reservation mode: marked, without reserved pods left
    reserved: int = 0
    relabelled: Sequence[tuple[Pod, bool]] = ()  # pods whose label must change, and whether they are reserved
    overdue_updates: int = 0  # old pods that are reserved because their update takes too long


def adaptive(
    child: Child, stored: Condition | None, patience: Patience, now: datetime, deadlines: Deadlines
) -> Schedulability:
    """Check the pods of a child whose surplus goes to other subsets (§10)."""
    marked, status, waiting = stored is not None and stored.status == "False", child.workload.status, list[Pod]()
    if status.ready_replicas < status.replicas:
        waiting = [pod for pod in child.pods if is_timed_out(pod, patience.critical, now, deadlines)]
    if marked and stored is not None and stored.last_transition_time is not None:
        if not deadlines.passed(later(stored.last_transition_time, patience.marked), now):
            return Schedulability(unschedulable=True, marked=True, condition=stored, waiting=waiting)
        text = f"unschedulable subset recovered after {patience.marked:.6f} seconds"
        stored = changed(stored, True, RECOVERED, text, now)
    if waiting:
        stored = changed(stored, False, RESCHEDULED, "timeout pending pods found", now)
        deadlines.until(later(now, patience.marked))
    return Schedulability(unschedulable=bool(waiting), marked=marked, condition=stored, waiting=waiting)


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """The rules that decide which pods are reserved (§11)."""

    patience: Patience
    revision: str  # name of the UnitedDeployment's newest revision
    rollout_began: datetime
    now: datetime
    deadlines: Deadlines

    def look_at(self, child: Child, stored: Condition | None) -> Schedulability:
        """Check the pods of a child that keeps unschedulable pods as reserved."""
        marked = stored is not None and stored.status == "False"
        awaited = stored is not None and marked and _awaits_pods(child, stored)
        reserved = [pod for pod in child.pods if self._is_reserved(pod, marked)]
        names = {pod.metadata.uid for pod in reserved}
        relabelled = [
            (pod, pod.metadata.uid in names)
            for pod in child.pods
            if pod.metadata.labels.get(RESERVED_LABEL) != _text(pod.metadata.uid in names)
        ]
        text = "reserved pods found" if reserved else "no reserved pods"
        condition = changed(stored, not reserved, RESCHEDULED, text, self.now)
        return Schedulability(
            unschedulable=bool(reserved),
            marked=marked,
            recovered=marked and not reserved and not awaited,
            condition=stored if awaited and not reserved else condition,
            waiting=[pod for pod in reserved if is_unscheduled(pod)],
            reserved=len(reserved),
            relabelled=relabelled,
            overdue_updates=sum(
                self._is_overdue(pod) for pod in reserved if pod.metadata.labels.get(RESERVED_LABEL) != "true"
            ),
        )

    def _is_reserved(self, pod: Pod, marked: bool) -> bool:
        label = pod.metadata.labels.get(RESERVED_LABEL)
        if marked and label is None:
            self.deadlines.until(later(self.now, self.patience.marked))
            return True
        if label == "true":
            return not self._has_proved_itself(pod)
        if is_on(pod, self.revision):
            return self._asks_again(is_timed_out(pod, self.patience.critical, self.now, self.deadlines))
        return self._asks_again(self._is_overdue(pod))

    def _has_proved_itself(self, pod: Pod) -> bool:
        """Report whether the pod is on the newest revision, and has been ready for long enough."""
        if pod.status.phase != "Running" or not is_on(pod, self.revision) or pod.ready_since is None:
            self.deadlines.until(later(self.now, self.patience.marked))
            return False
        return self.deadlines.passed(later(pod.ready_since, self.patience.marked), self.now)

    def _is_overdue(self, pod: Pod) -> bool:
        """Report whether the pod is on an old revision for longer than the critical time of the rollout."""
        if is_on(pod, self.revision) or pod.metadata.deletion_timestamp is not None:
            return False
        return self.deadlines.passed(later(self.rollout_began, self.patience.critical), self.now)

    def _asks_again(self, reserved: bool) -> bool:
        if reserved:
            self.deadlines.until(later(self.now, self.patience.marked))
        return reserved


def verified_again(checked: Schedulability, now: datetime) -> Schedulability:
    """Mark a subset again that has just recovered and gets more pods, so that those are tried first (§11.4)."""
    return msgspec.structs.replace(checked, condition=changed(checked.condition, False, RESCHEDULED, GROWN, now))


def _awaits_pods(child: Child, mark: Condition) -> bool:
    """Report whether the subset is marked for pods that its workload has not created yet."""
    return mark.message in (JOINED, GROWN) and sum(pod.active for pod in child.pods) < child.workload.replicas


def changed(stored: Condition | None, schedulable: bool, reason: str, message: str, now: datetime) -> Condition:
    """Return the new condition; the stored one if neither its status nor its reason changes."""
    status = "True" if schedulable else "False"
    if stored is not None and (stored.status, stored.reason) == (status, reason):
        return stored
    moment = now.replace(microsecond=0)
    return Condition(type=SCHEDULABLE, status=status, last_transition_time=moment, reason=reason, message=message)


def _text(reserved: bool) -> str:
    return "true" if reserved else "false"
