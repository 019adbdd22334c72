"""BroadcastJob in its storage version, apps.kruise.io/v1beta1 (broadcastjob.md §2).

The older version has the same fields. Templates stay raw: they are copied as documents, never through a partial type.
"""

import msgspec

from flotilla_common.api.batch import CompletionPolicy, JobCondition
from flotilla_common.api.meta import IntOrString, Model, Moment, ObjectMeta
from flotilla_common.api.resources import Resource

BROADCAST_JOB = Resource("apps.kruise.io", "v1beta1", "broadcastjobs", "BroadcastJob")

FAIL_FAST, CONTINUE, PAUSE = "FailFast", "Continue", "Pause"
RUNNING, PAUSED, COMPLETED, FAILED = "running", "paused", "completed", "failed"
"""Phases."""

NAME_LABEL, UID_LABEL = "broadcastjob-name", "broadcastjob-controller-uid"
"""Labels of the pods."""

UNLIMITED = 2147483647
"""The default parallelism."""


class FailurePolicy(Model):
    """The consequence of a failed pod for the job; an unknown type is `Continue`."""

    type: str = FAIL_FAST
    restart_limit: int = 0  # restarts of a pod with restartPolicy OnFailure before it counts as failed


class BroadcastJobSpec(Model):
    parallelism: IntOrString | None = None  # pods that are active at once; percentages of desired, rounded up
    template: msgspec.Raw = msgspec.Raw(b"{}")
    completion_policy: CompletionPolicy = CompletionPolicy()
    paused: bool = False
    failure_policy: FailurePolicy = FailurePolicy()


class BroadcastJobStatus(Model):
    """The status of a BroadcastJob; counts are pods, but `desired` is nodes (broadcastjob.md §2.2)."""

    conditions: list[JobCondition] = []  # Complete, Failed
    start_time: Moment | None = None
    completion_time: Moment | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    desired: int = 0
    phase: str = ""

    @property
    def verdict(self) -> str:
        """Return `Complete` or `Failed`, the first of these conditions that is True, or an empty text."""
        found = (one.type for one in self.conditions if one.status == "True" and one.type in ("Complete", "Failed"))
        return next(found, "")


class BroadcastJob(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: BroadcastJobSpec = BroadcastJobSpec()
    status: BroadcastJobStatus = BroadcastJobStatus()
