"""The status of a BroadcastJob: counts while it runs, and the final condition at its end (broadcastjob.md §5)."""

from datetime import datetime

import msgspec

from flotilla_common.api.batch import JobCondition, job_condition
from flotilla_common.api.kinds.broadcastjob.types import (
    BROADCAST_JOB,
    COMPLETED,
    FAILED,
    BroadcastJob,
    BroadcastJobStatus,
)
from flotilla_common.control.plan import Event, Patch
from flotilla_common.control.writes import status_patch

_ALWAYS = ("active", "succeeded", "failed", "desired", "phase")
"""Fields that are always written, even if 0."""


def has_ended(job: BroadcastJob) -> bool:
    """Report whether the job is complete or has failed; its status is final then."""
    return job.spec.completion_policy.ends and bool(job.status.verdict)


def completed(status: BroadcastJobStatus, now: datetime) -> BroadcastJobStatus:
    """Return the status of a job that is complete."""
    message = f"Job completed, {tally(status)}"
    return _ended(status, COMPLETED, job_condition("Complete", "Complete", message, now), now)


def failed(status: BroadcastJobStatus, message: str, now: datetime) -> BroadcastJobStatus:
    """Return the status of a job that has failed."""
    return _ended(status, FAILED, job_condition("Failed", "Failed", message, now), now)


def tally(status: BroadcastJobStatus) -> str:
    """Return the result as messages phrase it."""
    return f"{status.succeeded} pods succeeded, {status.failed} pods failed"


def patch_of_status(job: BroadcastJob, status: BroadcastJobStatus, event: Event | None = None) -> Patch | None:
    """Return the write of the status, or None if it is unchanged; `event` follows the write."""
    patch = status_patch(BROADCAST_JOB, job.metadata, job.status, status, *_ALWAYS)
    return None if patch is None else msgspec.structs.replace(patch, on_success=event)


def _ended(status: BroadcastJobStatus, phase: str, condition: JobCondition, now: datetime) -> BroadcastJobStatus:
    return msgspec.structs.replace(status, phase=phase, completion_time=now, conditions=[*status.conditions, condition])
