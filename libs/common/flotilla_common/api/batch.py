"""Partial types of batch/v1: Job."""

from flotilla_common.api.meta import Condition, Model, ObjectMeta
from flotilla_common.api.moments import Moment


class JobStatus(Model):
    conditions: list[Condition] = []  # Complete, Failed and others
    start_time: Moment | None = None

    @property
    def verdict(self) -> str:
        """`Complete` or `Failed`, as the first condition that is True says; empty while there is none."""
        found = (one.type for one in self.conditions if one.status == "True" and one.type in ("Complete", "Failed"))
        return next(found, "")


class Job(Model):
    metadata: ObjectMeta = ObjectMeta()
    status: JobStatus = JobStatus()
