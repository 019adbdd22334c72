"""EphemeralJob, apps.kruise.io/v1alpha1, its only version (ephemeraljob.md §2).

The template's containers stay raw: they are copied as documents, never through a partial type.
"""

from typing import Any

from flotilla_common.api.batch import JobCondition
from flotilla_common.api.meta import LabelSelector, Model, Moment, ObjectMeta, struct_cached_property
from flotilla_common.api.resources import Resource
from flotilla_common.api.selectors import Selector

EPHEMERAL_JOB = Resource("apps.kruise.io", "v1alpha1", "ephemeraljobs", "EphemeralJob")

FINALIZER = "apps.kruise.io/ephemeralcontainers-cleanup"
JOB_UID_ENV = "KRUISE_EJOB_ID"
"""The environment variable that identifies the containers of a job."""

DEFAULT_TTL_SECONDS = 1800

SUCCEEDED, FAILED, WAITING, RUNNING = "Succeeded", "Failed", "Waiting", "Running"
PAUSED, ERROR, UNKNOWN = "Paused", "Error", "Unknown"
"""Phases."""


class EphemeralTemplate(Model):
    ephemeral_containers: list[dict[str, Any]] = []

    @property
    def names(self) -> frozenset[str]:
        """Return the names of the containers."""
        return frozenset(str(container.get("name", "")) for container in self.ephemeral_containers)


class EphemeralJobSpec(Model):
    selector: LabelSelector = LabelSelector()
    replicas: int | None = None  # None: all pods that match
    parallelism: int | None = None  # pods whose containers are at work at the same time; None: 1
    template: EphemeralTemplate = EphemeralTemplate()
    paused: bool = False
    active_deadline_seconds: int | None = None  # from status.startTime
    ttl_seconds_after_finished: int | None = None  # from status.completionTime; None: DEFAULT_TTL_SECONDS


class EphemeralJobStatus(Model):
    """The status of an EphemeralJob; all counts are pods (ephemeraljob.md §7)."""

    conditions: list[JobCondition] = []  # Initialized, MatchedEmpty, JobSucceeded, JobFailed, JobError
    start_time: Moment | None = None
    completion_time: Moment | None = None
    phase: str = ""
    match: int = 0
    running: int = 0
    succeeded: int = 0
    waiting: int = 0
    failed: int = 0


class EphemeralJob(Model, dict=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: EphemeralJobSpec = EphemeralJobSpec()
    status: EphemeralJobStatus = EphemeralJobStatus()

    @struct_cached_property
    def query(self) -> Selector:
        """Return the compiled selector. Raises ValueError if it is invalid."""
        return Selector.compile(self.spec.selector)
