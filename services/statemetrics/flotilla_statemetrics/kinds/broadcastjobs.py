"""The metrics of BroadcastJobs."""

from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB, BroadcastJob
from flotilla_common.api.numbers import lenient_value
from flotilla_statemetrics.families import StateKind, conditions, created, generation, number, object_labels, word


def _parallelism(job: BroadcastJob) -> int | None:
    """Return the limit of active pods, if the job sets one. Percentages are of `desired`, rounded up."""
    limit = job.spec.parallelism
    return None if limit is None else max(lenient_value(limit, job.status.desired, round_up=True), 0)


BROADCAST_JOBS = StateKind(
    resource=BROADCAST_JOB,
    type=BroadcastJob,
    labels=("broadcastjob",),
    families=(
        created("kruise_broadcastjob_created"),
        object_labels("kruise_broadcastjob_labels"),
        generation("kruise_broadcastjob_metadata_generation"),
        number("kruise_broadcastjob_status_spec_parallelism", "Pods that may be active at once.", _parallelism),
        number(
            "kruise_broadcastjob_spec_strategy_activedeadline_seconds",
            "Seconds that the job may take.",
            lambda one: one.spec.completion_policy.active_deadline_seconds,
        ),
        number(
            "kruise_broadcastjob_spec_strategy_ttl_seconds",
            "Seconds that the job stays once it has ended.",
            lambda one: one.spec.completion_policy.ttl_seconds_after_finished,
        ),
        word(
            "kruise_broadcastjob_spec_strategy_type",
            "When the job ends.",
            "type",
            lambda one: one.spec.completion_policy.type,
        ),
        number("kruise_broadcastjob_status_active", "Running pods.", lambda one: one.status.active),
        number("kruise_broadcastjob_status_succeeded", "Pods that succeeded.", lambda one: one.status.succeeded),
        number("kruise_broadcastjob_status_failed", "Pods that failed.", lambda one: one.status.failed),
        number("kruise_broadcastjob_status_desired", "Nodes that should have a pod.", lambda one: one.status.desired),
        conditions("kruise_broadcastjob_status_condition", lambda one: one.status.conditions),
    ),
)
