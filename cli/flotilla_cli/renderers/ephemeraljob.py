"""EphemeralJob: a card with the numbers of pods."""

from functools import partial

import msgspec

from flotilla_cli.card.card import Rendering
from flotilla_cli.card.live import LiveCard
from flotilla_cli.picture import Opener
from flotilla_common.api.kinds.ephemeraljob.types import EphemeralJob


def ephemeral_job(raw: bytes) -> Rendering:
    """What is put into which pods, and how many are how far."""
    job = msgspec.json.decode(raw, type=EphemeralJob)
    status = job.status
    containers = ", ".join(sorted(job.spec.template.names)) or "no container"
    headline = f"{status.phase or 'not looked at yet'}: {containers} for {_matched(job)}"
    counts = (status.match, status.running, status.succeeded, status.failed, status.waiting)
    return Rendering(headline, ("MATCH", "RUNNING", "SUCCEEDED", "FAILED", "WAITING"), [tuple(map(str, counts))])


def _matched(job: EphemeralJob) -> str:
    try:
        selector = str(job.query) or "all labels"
    except ValueError:
        selector = "a selector that cannot be read"
    return f"pods of {selector}"


picture: Opener = partial(LiveCard, ephemeral_job)
