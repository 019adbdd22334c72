"""Partial types of batch/v1: Job."""

from datetime import datetime

from flotilla_common.api.meta import Condition, Model, ObjectMeta


class JobStatus(Model):
    conditions: list[Condition] = []  # Complete, Failed and others
    start_time: datetime | None = None


class Job(Model):
    metadata: ObjectMeta = ObjectMeta()
    status: JobStatus = JobStatus()
