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
        "What is wanted.",
        ("template",),
        parallelism=int_or_string(
            "How many pods are active at once; percentages are of the nodes, rounded up. Default: no limit."
        ),
        template=anything("The pod template: metadata and spec of the pods to run; restartPolicy Never or OnFailure."),
        completionPolicy=completion_policy(),
        paused=boolean("Makes no more pods; those that run go on. Default: false."),
        failurePolicy=_failure(),
    )


def _failure() -> Schema:
    return struct(
        "What a failed pod means for the job.",
        type=string("FailFast: the job fails. Continue: it goes on. Pause: it makes no more pods. Default: FailFast."),
        restartLimit=integer("Restarts of a pod with restartPolicy OnFailure before it counts as failed. Default: 0."),
    )


def _status() -> Schema:
    return struct(
        "What was last seen.",
        ("active", "succeeded", "failed", "desired", "phase"),
        conditions=job_conditions("Complete or Failed, once the job has ended."),
        startTime=time("When the job was first looked at."),
        completionTime=time("When it became Complete or Failed."),
        active=integer("Pods that are at work."),
        succeeded=integer("Pods that succeeded."),
        failed=integer("Pods that failed."),
        desired=integer("Nodes that should run a pod, or have run one."),
        phase=string("running, paused, completed or failed."),
    )
