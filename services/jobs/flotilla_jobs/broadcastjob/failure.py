"""When a BroadcastJob fails, and what is done then (broadcastjob.md §4.2 steps 9 to 11).

The verdict is final, so it is written only when the pods that were at work are deleted; those of earlier tries are
noted, because the job counts them as failed.
"""

import msgspec

from flotilla_common.api.kinds.broadcastjob.types import FAIL_FAST, BroadcastJobStatus
from flotilla_common.control.draft import Draft
from flotilla_common.control.plan import Event, Frozen, Intent, State
from flotilla_jobs.broadcastjob.context import PlanContext
from flotilla_jobs.broadcastjob.status import failed, patch_of_status, tally
from flotilla_jobs.broadcastjob.work import delete

_ENDED = "ended"
"""Note: uids of pods that were deleted because the job fails."""


class Failure(Frozen):
    """Why a job fails."""

    reason: str  # of the event
    message: str
    told_before: bool = False  # also before the active pods are deleted


def failure_of(context: PlanContext, draft: Draft) -> Failure | None:
    """Why the job fails now; None if it goes on. The deadline is waited for."""
    if context.counts.failed and context.job.spec.failure_policy.type == FAIL_FAST:
        found = "failed pod is found"
        return Failure(
            reason=found, message=f"failure policy is FailurePolicyTypeFailFast and {found}", told_before=True
        )
    if context.deadline is not None and draft.waits.passed(context.deadline, context.now):
        meta = context.job.metadata
        text = f"Job {meta.namespace}/{meta.name} was active longer than specified deadline"
        return Failure(reason="DeadlineExceeded", message=text)
    return None


def plan_failure(context: PlanContext, failure: Failure, status: BroadcastJobStatus, draft: Draft) -> None:
    """Delete the active pods, then write the verdict."""
    if failure.told_before and _ENDED not in context.snapshot.notes:
        draft.events.append(_event(failure, status))
    active = context.counts.active
    draft.stage([(delete(pod, Intent.CLEAN_UP, failure.message),) for pod in active])
    ended = _ended(context)
    draft.notes[_ENDED] = ",".join(sorted(ended))
    told = {pod.metadata.uid for pod in context.snapshot.pods if pod.status.phase in ("Failed", "Succeeded")}
    counted = msgspec.structs.replace(status, active=0, failed=status.failed + len(ended - told))
    verdict = failed(counted, failure.message, context.now)
    patch = patch_of_status(context.job, verdict, _event(failure, verdict))
    draft.stage([(patch,)] if patch is not None else [])
    text = f"{failure.message}: {tally(verdict)}"
    draft.reason(State.STUCK, "Failed", text, [*context.counts.failed, *active], symptom=True)


def _ended(context: PlanContext) -> set[str]:
    before = context.snapshot.notes.get(_ENDED, "")
    return {uid for uid in before.split(",") if uid} | {pod.metadata.uid for pod in context.counts.active}


def _event(failure: Failure, status: BroadcastJobStatus) -> Event:
    return Event(failure.reason, f"{failure.message}: {tally(status)}", warning=True)
