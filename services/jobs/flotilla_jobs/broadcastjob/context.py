"""What all steps of a pass know: the job, its nodes and pods, and what the spec asks for."""

from datetime import datetime

from flotilla_common.api.kinds.broadcastjob.types import UNLIMITED, BroadcastJob
from flotilla_common.api.moments import later
from flotilla_common.api.numbers import lenient_value
from flotilla_common.control.draft import Draft
from flotilla_common.control.plan import Event, Frozen
from flotilla_common.workload.placement import StrictPlacement
from flotilla_jobs.broadcastjob.counts import Counts, count
from flotilla_jobs.broadcastjob.nodes import Survey, survey
from flotilla_jobs.broadcastjob.snapshot import BroadcastJobSnapshot


class PlanContext(Frozen):
    """One pass."""

    snapshot: BroadcastJobSnapshot
    now: datetime
    survey: Survey
    counts: Counts
    start: datetime  # of the job
    parallelism: int | None  # None: it cannot be read

    @property
    def job(self) -> BroadcastJob:
        """The job."""
        return self.snapshot.job

    @property
    def deadline(self) -> datetime | None:
        """When the job fails if it has not ended; None: never."""
        policy = self.job.spec.completion_policy
        if not self.job.spec.ends or policy.active_deadline_seconds is None:
            return None
        return later(self.start, policy.active_deadline_seconds)

    @property
    def is_complete(self) -> bool:
        """Every node that is to have a pod has one, and none of these is at work. Pods that have to go, go first: the
        pass that follows does not count them any more."""
        return (
            self.job.spec.ends
            and bool(self.survey.placed)
            and not self.survey.waiting
            and not self.survey.misfits
            and all(not pod.active for pod in self.survey.placed.values())
        )

    def tell_once(self, draft: Draft, event: Event) -> None:
        """Record an event of something that lasts, unless the pass before has told it."""
        if self.snapshot.notes.get(event.reason) != event.message:
            draft.events.append(event)
        draft.notes[event.reason] = event.message


def look(snapshot: BroadcastJobSnapshot, now: datetime) -> PlanContext:
    """Work out what there is and what is wanted. Raises ValueError: the template cannot be read."""
    job, now = snapshot.job, now.replace(microsecond=0)
    found = survey(snapshot.nodes, snapshot.pods, StrictPlacement.of(job.spec.template))
    return PlanContext(
        snapshot=snapshot,
        now=now,
        survey=found,
        counts=count(snapshot.pods, job.spec.failure_policy.restart_limit),
        start=job.status.start_time or now,
        parallelism=_parallelism(job, found.desired),
    )


def _parallelism(job: BroadcastJob, desired: int) -> int | None:
    wanted = job.spec.parallelism
    try:
        return lenient_value(UNLIMITED if wanted is None else wanted, desired, round_up=True)
    except ValueError:
        return None
