"""BroadcastJob: a card with the numbers of nodes and pods."""

from functools import partial

import msgspec

from flotilla_cli.card.card import Rendering
from flotilla_cli.card.live import LiveCard
from flotilla_cli.picture import Opener
from flotilla_common.api.kinds.broadcastjob.types import UNLIMITED, BroadcastJob, BroadcastJobStatus

_COLUMNS = ("DESIRED", "ACTIVE", "SUCCEEDED", "FAILED", "PARALLELISM", "ENDS", "ON FAILURE")


def broadcast_job(raw: bytes) -> Rendering:
    """How many nodes have had their pod, and what the job goes by."""
    job = msgspec.json.decode(raw, type=BroadcastJob)
    spec, status = job.spec, job.status
    limit = "-" if spec.parallelism in (None, UNLIMITED) else str(spec.parallelism)
    counts = map(str, (status.desired, status.active, status.succeeded, status.failed))
    row = (*counts, limit, spec.completion_policy.type, spec.failure_policy.type)
    return Rendering(_headline(status), _COLUMNS, [row])


def _headline(status: BroadcastJobStatus) -> str:
    if not status.phase:
        return "not looked at yet"
    told = next((one.message for one in status.conditions if one.type == status.verdict), "")
    return f"{status.phase}: {told or f'{status.succeeded} of {status.desired} nodes are done'}"


picture: Opener = partial(LiveCard, broadcast_job)
