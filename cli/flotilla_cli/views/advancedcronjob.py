"""AdvancedCronJob: its schedule, and its active jobs."""

from datetime import datetime

import msgspec

from flotilla_cli.views import view_of
from flotilla_cli.views.kindview import KindView, Related, Summary
from flotilla_cli.views.related import controls, related_of
from flotilla_common.api.documents import Json, sequence
from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB, AdvancedCronJob
from flotilla_common.api.meta import metadata_of, rfc3339
from flotilla_common.kube.interface import Api
from flotilla_common.workload.causes import Around


def cron_job(raw: bytes) -> Summary:
    """Describe the schedule, the kind of jobs, the last run, and what is active."""
    job = msgspec.json.decode(raw, type=AdvancedCronJob)
    spec, status = job.spec, job.status
    zone = f" in {spec.time_zone}" if spec.time_zone else ""
    last = f"last run of {rfc3339(status.last_schedule_time)}" if status.last_schedule_time else "no run yet"
    headline = f"{status.type or 'job'} at {spec.schedule!r}{zone}, {last}{', paused' if spec.paused else ''}"
    rows = [(one.name, one.kind) for one in status.active]
    return Summary(headline, ("ACTIVE", "KIND"), rows)


def _progress(_: Json, status: Json) -> str:
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
        return Related(basis=Around(now=now))
    return msgspec.structs.replace(await related_of(api, view_of(resource), newest, now), served=None)


VIEW = KindView(
    resource=ADVANCED_CRON_JOB,
    summary=cron_job,
    related=_newest_run,
    plays_first_run=True,
    progress=_progress,
)
