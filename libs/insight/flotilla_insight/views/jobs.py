"""AdvancedCronJob with its schedule, and BroadcastJob with its numbers of nodes and pods."""

from datetime import datetime

import msgspec

from flotilla_common.api.documents import Json, sequence
from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB, AdvancedCronJob
from flotilla_common.api.kinds.broadcastjob.types import (
    BROADCAST_JOB,
    NAME_LABEL,
    UNLIMITED,
    BroadcastJob,
    BroadcastJobStatus,
)
from flotilla_common.api.meta import LabelSelector, metadata_of, rfc3339
from flotilla_common.api.resources import POD
from flotilla_common.kube.interface import Api
from flotilla_common.workload.causes import PodContext
from flotilla_common.workload.strict_placement import StrictPlacement
from flotilla_insight.views import view_of
from flotilla_insight.views.kindview import Coverage, KindView, PodQuery, Related, Summary
from flotilla_insight.views.related import controls, related_of

_BROADCAST_COLUMNS = ("DESIRED", "ACTIVE", "SUCCEEDED", "FAILED", "PARALLELISM", "ENDS", "ON FAILURE")


def cron_job(raw: bytes) -> Summary:
    """Describe the schedule, the kind of jobs, the last run, and what is active."""
    job = msgspec.json.decode(raw, type=AdvancedCronJob)
    spec, status = job.spec, job.status
    zone = f" in {spec.time_zone}" if spec.time_zone else ""
    last = f"last run of {rfc3339(status.last_schedule_time)}" if status.last_schedule_time else "no run yet"
    headline = f"{status.type or 'job'} at {spec.schedule!r}{zone}, {last}{', paused' if spec.paused else ''}"
    rows = [(one.name, one.kind) for one in status.active]
    return Summary(headline, ("ACTIVE", "KIND"), rows)


def _cron_progress(_: Json, status: Json) -> str:
    """Return how many runs are active. An idle one waits for its next run."""
    active = len(sequence(status.get("active")))
    return f"{active} {'runs' if active > 1 else 'run'} active" if active else ""


async def _newest_run(api: Api, raw: bytes, now: datetime) -> Related:
    """Read the objects of the newest run, a job of one of three kinds."""
    cron_job = msgspec.json.decode(raw, type=AdvancedCronJob)
    resource, _ = cron_job.spec.template.chosen
    listed = [bytes(item) for item in (await api.list(resource, cron_job.metadata.namespace)).items]
    runs = [item for item in listed if controls(cron_job.metadata, metadata_of(item))]
    newest = max(runs, key=lambda item: metadata_of(item).creation_timestamp or now, default=None)
    if newest is None:
        return Related(basis=PodContext(now=now))
    return msgspec.structs.replace(await related_of(api, view_of(resource), newest, now), served=None)


def broadcast_job(raw: bytes) -> Summary:
    """Describe the progress over nodes, and the job's limits and policies."""
    job = msgspec.json.decode(raw, type=BroadcastJob)
    spec, status = job.spec, job.status
    limit = "-" if spec.parallelism in (None, UNLIMITED) else str(spec.parallelism)
    counts = map(str, (status.desired, status.active, status.succeeded, status.failed))
    row = (*counts, limit, spec.completion_policy.type, spec.failure_policy.type)
    return Summary(_headline(status), _BROADCAST_COLUMNS, [row])


def _headline(status: BroadcastJobStatus) -> str:
    if not status.phase:
        return "not reconciled yet"
    message = next((one.message for one in status.conditions if one.type == status.verdict), "")
    return f"{status.phase}: {message or f'{status.succeeded} of {status.desired} nodes are done'}"


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


def _broadcast_progress(spec: Json, status: Json) -> str:
    if status.get("completionTime"):
        return ""
    desired, succeeded, active = (status.get(name, 0) for name in ("desired", "succeeded", "active"))
    said = [f"{succeeded} of {desired} nodes done, {active} pods at work", "paused" if spec.get("paused") else ""]
    return ", ".join(filter(None, said))


VIEWS = (
    KindView(
        resource=ADVANCED_CRON_JOB,
        summary=cron_job,
        related=_newest_run,
        plays_first_run=True,
        progress=_cron_progress,
    ),
    KindView(
        resource=BROADCAST_JOB,
        summary=broadcast_job,
        pods=_pods,
        coverage=_coverage,
        has_unknown_name=lambda made: made.kind == POD.kind,  # as a DaemonSet's: depends on earlier pods of the node
        progress=_broadcast_progress,
    ),
)
