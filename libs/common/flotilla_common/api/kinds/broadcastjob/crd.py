"""The BroadcastJob CRD (broadcastjob.md §1 and §2). Both versions are the same.

The webhook validates values, if they are validated at all, so the schema has neither enums nor limits.
"""

from flotilla_common.api.crds.rollout import completion_policy
from flotilla_common.api.crds.schema import (
    Schema,
    anything,
    boolean,
    int_or_string,
    integer,
    job_conditions,
    string,
    struct,
    time,
)
from flotilla_common.api.crds.version import Column, Version

_COLUMNS = (
    Column("Desired", "integer", ".status.desired"),
    Column("Active", "integer", ".status.active"),
    Column("Succeeded", "integer", ".status.succeeded"),
    Column("Failed", "integer", ".status.failed"),
    Column("AGE", "date", ".metadata.creationTimestamp"),
)


def version(name: str) -> Version:
    """Return one version of the CRD."""
    return Version(name, spec(), _status(), _COLUMNS)


def spec() -> Schema:
    """Return the schema of the spec, which is also in an AdvancedCronJob's template."""
    return struct(
        "The desired state.",
        ("template",),
        parallelism=int_or_string(
            "The maximum number of active pods; percentages are of the nodes, rounded up. Default: no limit."
        ),
        template=anything("The pod template: metadata and spec of the pods to run; restartPolicy Never or OnFailure."),
        completionPolicy=completion_policy(),
        paused=boolean("Stops the creation of pods; running ones go on. Default: false."),
        failurePolicy=_failure(),
    )


def _failure() -> Schema:
    return struct(
        "The consequence of a failed pod for the job.",
        type=string(
            "FailFast: the job fails. Continue: it goes on. Pause: it creates no more pods. Default: FailFast."
        ),
        restartLimit=integer("Restarts of a pod with restartPolicy OnFailure before it counts as failed. Default: 0."),
    )


def _status() -> Schema:
    return struct(
        "The observed state.",
        ("active", "succeeded", "failed", "desired", "phase"),
        conditions=job_conditions("Complete or Failed, once the job has ended."),
        startTime=time("The time of the first reconcile."),
        completionTime=time("The time at which it became Complete or Failed."),
        active=integer("Pods that are active."),
        succeeded=integer("Pods that succeeded."),
        failed=integer("Pods that failed."),
        desired=integer("Nodes that should run a pod, or have run one."),
        phase=string("running, paused, completed or failed."),
    )
