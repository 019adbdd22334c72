"""Partial types of batch/v1, and types that our own kinds of jobs share."""

from datetime import datetime

from flotilla_common.api.meta import Condition, Model, Moment, ObjectMeta

ALWAYS, NEVER = "Always", "Never"


class CompletionPolicy(Model):
    """The end of a job. With `Never` the job stays and serves later nodes; every other type ends."""

    type: str = ALWAYS
    active_deadline_seconds: int | None = None  # from status.startTime
    ttl_seconds_after_finished: int | None = None  # from status.completionTime

    @property
    def ends(self) -> bool:
        """Report whether the job ever completes."""
        return self.type != NEVER


class JobCondition(Model):
    """A status condition of our own kinds of jobs."""

    type: str = ""
    status: str = ""
    last_probe_time: Moment | None = None
    last_transition_time: Moment | None = None
    reason: str = ""
    message: str = ""


def job_condition(kind: str, reason: str, message: str, now: datetime) -> JobCondition:
    """Return a condition that is true from now on."""
    return JobCondition(
        type=kind, status="True", last_probe_time=now, last_transition_time=now, reason=reason, message=message
    )


class JobStatus(Model):
    conditions: list[Condition] = []  # Complete, Failed and others
    start_time: Moment | None = None

    @property
    def verdict(self) -> str:
        """Return `Complete` or `Failed`, the first of these conditions that is True, or an empty text."""
        found = (one.type for one in self.conditions if one.status == "True" and one.type in ("Complete", "Failed"))
        return next(found, "")


class Job(Model):
    metadata: ObjectMeta = ObjectMeta()
    status: JobStatus = JobStatus()
