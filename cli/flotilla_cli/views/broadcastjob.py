"""BroadcastJob: the numbers of nodes and pods."""

import msgspec

from flotilla_cli.views.kindview import Coverage, KindView, PodQuery, Summary
from flotilla_cli.views.related import controls
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.broadcastjob.types import (
    BROADCAST_JOB,
    NAME_LABEL,
    UNLIMITED,
    BroadcastJob,
    BroadcastJobStatus,
)
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.resources import POD
from flotilla_common.workload.placement import StrictPlacement

_COLUMNS = ("DESIRED", "ACTIVE", "SUCCEEDED", "FAILED", "PARALLELISM", "ENDS", "ON FAILURE")


def broadcast_job(raw: bytes) -> Summary:
    """Describe the progress over nodes, and the job's limits and policies."""
    job = msgspec.json.decode(raw, type=BroadcastJob)
    spec, status = job.spec, job.status
    limit = "-" if spec.parallelism in (None, UNLIMITED) else str(spec.parallelism)
    counts = map(str, (status.desired, status.active, status.succeeded, status.failed))
    row = (*counts, limit, spec.completion_policy.type, spec.failure_policy.type)
    return Summary(_headline(status), _COLUMNS, [row])


def _headline(status: BroadcastJobStatus) -> str:
    if not status.phase:
        return "not reconciled yet"
    told = next((one.message for one in status.conditions if one.type == status.verdict), "")
    return f"{status.phase}: {told or f'{status.succeeded} of {status.desired} nodes are done'}"


def _pods(raw: bytes) -> PodQuery | None:
    """Return the query for the pods that it created; None once it is complete."""
    job = msgspec.json.decode(raw, type=BroadcastJob)
    if job.status.verdict == "Complete":
        return None
    chosen = LabelSelector(match_labels={NAME_LABEL: job.metadata.name})
    return PodQuery(selector=chosen, keep=lambda pod: controls(job.metadata, pod.metadata))


def _coverage(raw: bytes) -> Coverage | None:
    """Return which nodes need a pod; None once the job has ended."""
    job = msgspec.json.decode(raw, type=BroadcastJob)
    if job.status.verdict:
        return None
    return Coverage(why_not=StrictPlacement.of(job.spec.template).why_not, once=True)


def _progress(spec: Json, status: Json) -> str:
    if status.get("completionTime"):
        return ""
    desired, succeeded, active = (status.get(name, 0) for name in ("desired", "succeeded", "active"))
    said = [f"{succeeded} of {desired} nodes done, {active} pods at work", "paused" if spec.get("paused") else ""]
    return ", ".join(filter(None, said))


VIEW = KindView(
    resource=BROADCAST_JOB,
    summary=broadcast_job,
    pods=_pods,
    coverage=_coverage,
    has_unknown_name=lambda made: made.kind == POD.kind,  # as a DaemonSet's: depends on earlier pods of the node
    progress=_progress,
)
