"""The status of a job: counts, phase and conditions (ephemeraljob.md §7.2)."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.batch import JobCondition, job_condition
from flotilla_common.api.kinds.ephemeraljob.types import (
    ERROR,
    FAILED,
    PAUSED,
    RUNNING,
    SUCCEEDED,
    UNKNOWN,
    WAITING,
    EphemeralJob,
    EphemeralJobStatus,
)
from flotilla_common.api.meta import later
from flotilla_jobs.ephemeraljob.targets import TargetPods

INITIALIZED, MATCHED_EMPTY = "Initialized", "MatchedEmpty"
JOB_SUCCEEDED, JOB_FAILED, JOB_ERROR = "JobSucceeded", "JobFailed", "JobError"
"""Types of conditions; once set, they stay, and are always True."""

DEADLINE_EXCEEDED = "DeadlineExceeded"

ConditionTexts = Mapping[str, tuple[str, str]]
"""Reason and message by the type of the condition."""


class PhaseDecision(msgspec.Struct, frozen=True):
    """The phase that a job gets, its conditions, and whether it ends."""

    phase: str
    condition_texts: ConditionTexts = {}
    ends: bool = False


def deadline_of(job: EphemeralJob, now: datetime) -> datetime | None:
    """Return when the job times out, or None without a deadline; a job without a start time starts now."""
    seconds = job.spec.active_deadline_seconds
    start = job.status.start_time or now.replace(microsecond=0)
    return None if seconds is None else later(start, seconds)


def status_of(job: EphemeralJob, targets: TargetPods, now: datetime) -> EphemeralJobStatus:
    """Return the status of a job that is not completed."""
    counts = EphemeralJobStatus(
        match=len(targets.chosen),
        running=len(targets.of_state(RUNNING)),
        succeeded=len(targets.of_state(SUCCEEDED)),
        failed=len(targets.of_state(FAILED)),
        waiting=len(targets.of_state(WAITING)),
    )
    deadline = deadline_of(job, now)
    overdue = deadline is not None and now >= deadline
    decision = _amended(job, _phase_of(counts, job.spec.replicas), failed=counts.failed > 0, overdue=overdue)
    now = now.replace(microsecond=0)
    start = job.status.start_time or now
    return msgspec.structs.replace(
        counts,
        phase=decision.phase,
        start_time=start,
        completion_time=max(now, start) if decision.ends else None,
        conditions=_conditions(job.status.conditions, decision.condition_texts, now),
    )


def is_urgent(before: EphemeralJobStatus, after: EphemeralJobStatus) -> bool:
    """Report whether more has changed than counts and what follows from them."""
    return _beside_counts(before) != _beside_counts(after)


def _beside_counts(status: EphemeralJobStatus) -> tuple[object, ...]:
    return status.start_time, status.completion_time, status.conditions, status.phase in (PAUSED, ERROR)


def _phase_of(counts: EphemeralJobStatus, replicas: int | None) -> PhaseDecision:
    """Return the phase by the table of phases, in its order."""
    wanted = counts.match if replicas is None else replicas
    if counts.match == 0:
        return PhaseDecision(WAITING, {MATCHED_EMPTY: ("MatchEmpty", "job match no pods")})
    if counts.succeeded == wanted:
        return PhaseDecision(SUCCEEDED, {JOB_SUCCEEDED: ("JobSucceeded", "job success to run all tasks")}, ends=True)
    if counts.running > 0:
        return PhaseDecision(RUNNING)
    if counts.failed == wanted:
        return PhaseDecision(FAILED, ends=True)  # `_amended` adds the message, as for every pod that failed
    return PhaseDecision(WAITING if counts.waiting == wanted else UNKNOWN)


def _amended(job: EphemeralJob, decision: PhaseDecision, *, failed: bool, overdue: bool) -> PhaseDecision:
    """Apply what overrides the table, each item over the ones before it."""
    phase, condition_texts, ends = decision.phase, dict(decision.condition_texts), decision.ends
    who = f"EphemeralJob {job.metadata.namespace}/{job.metadata.name}"
    if job.spec.paused:
        phase = PAUSED
    if failed:
        condition_texts[JOB_FAILED] = ("CreateFailed", f"{who} failed to create ephemeral container")
    if overdue and phase in (WAITING, UNKNOWN, RUNNING):
        phase, ends = FAILED, True
        condition_texts[JOB_FAILED] = (DEADLINE_EXCEEDED, f"{who} was active longer than specified deadline")
    if not job.spec.template.ephemeral_containers:
        phase = ERROR
        condition_texts[JOB_ERROR] = ("Error", "job spec invalid fields.")
    return PhaseDecision(phase, condition_texts, ends)


def _conditions(stored: Sequence[JobCondition], condition_texts: ConditionTexts, now: datetime) -> list[JobCondition]:
    """Merge new conditions into the stored ones; one with the same reason and message keeps its times."""
    conditions = {
        condition.type: condition for condition in stored or (job_condition(INITIALIZED, INITIALIZED, "", now),)
    }
    for kind, (reason, message) in condition_texts.items():
        current = conditions.get(kind)
        if current is None or (current.reason, current.message) != (reason, message):
            conditions[kind] = job_condition(kind, reason, message, now)
    return list(conditions.values())
