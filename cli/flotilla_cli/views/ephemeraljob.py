"""EphemeralJob: the numbers of pods."""

import msgspec

from flotilla_cli.views.kindview import KindView, Summary
from flotilla_common.api.documents import Json, member
from flotilla_common.api.kinds.ephemeraljob.types import EPHEMERAL_JOB, JOB_UID_ENV, EphemeralJob
from flotilla_common.model.ephemeral import has_done


def ephemeral_job(raw: bytes) -> Summary:
    """Describe the containers, the pods that they go to, and the progress."""
    job = msgspec.json.decode(raw, type=EphemeralJob)
    status = job.status
    containers = ", ".join(sorted(job.spec.template.names)) or "no container"
    headline = f"{status.phase or 'not reconciled yet'}: {containers} for {_matched(job)}"
    counts = (status.match, status.running, status.succeeded, status.failed, status.waiting)
    return Summary(headline, ("MATCH", "RUNNING", "SUCCEEDED", "FAILED", "WAITING"), [tuple(map(str, counts))])


def _matched(job: EphemeralJob) -> str:
    try:
        selector = str(job.query) or "all labels"
    except ValueError:
        selector = "a selector that cannot be read"
    return f"pods of {selector}"


def _progress(_: Json, status: Json) -> str:
    if status.get("completionTime"):
        return ""
    match, done = status.get("match", 0), status.get("succeeded", 0) + status.get("failed", 0)
    return f"{done} of {match} pods done"


VIEW = KindView(
    resource=EPHEMERAL_JOB,
    summary=ephemeral_job,
    has_ended_in=lambda stored, pod: has_done(pod, str(member(stored, "metadata").get("uid", ""))),
    progress=_progress,
    public_variables=frozenset({JOB_UID_ENV}),
)
