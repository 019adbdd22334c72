"""AdvancedCronJob: a card with its schedule and the jobs that run."""

from functools import partial

import msgspec

from flotilla_cli.card.card import Rendering
from flotilla_cli.card.live import LiveCard
from flotilla_cli.picture import Opener
from flotilla_common.api.kinds.advancedcronjob.types import AdvancedCronJob
from flotilla_common.api.meta import rfc3339


def cron_job(raw: bytes) -> Rendering:
    """When it starts which kind of jobs, when it did last, and what is active."""
    job = msgspec.json.decode(raw, type=AdvancedCronJob)
    spec, status = job.spec, job.status
    zone = f" in {spec.time_zone}" if spec.time_zone else ""
    last = f"last run of {rfc3339(status.last_schedule_time)}" if status.last_schedule_time else "no run yet"
    headline = f"{status.type or 'job'} at {spec.schedule!r}{zone}, {last}{', paused' if spec.paused else ''}"
    rows = [(one.name, one.kind) for one in status.active]
    return Rendering(headline, ("ACTIVE", "KIND"), rows)


picture: Opener = partial(LiveCard, cron_job)
