"""Job of Kubernetes: it has no service of ours, so its problems are read from its status and its events."""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from flotilla_cli.diagnosis.pod_context import PodContextReader
from flotilla_cli.views.kindview import KindView, PodQuery, Related
from flotilla_cli.views.related import controls, pods_of
from flotilla_common.api.batch import Job
from flotilla_common.api.meta import LabelSelector, ObjectMeta
from flotilla_common.api.resources import JOB
from flotilla_common.kube.interface import Api
from flotilla_common.workload.causes import Around, Cause, Group
from flotilla_common.workload.causes.text import bare

_JOB_LABEL = "batch.kubernetes.io/controller-uid"
_ENDED = ("Complete", "Failed")
_TELLING = {"Failed": "has failed", "FailureTarget": "is failing", "Suspended": "is suspended"}
"""Conditions of a Job that explain why no pod does its work."""


async def _related(api: Api, raw: bytes, now: datetime) -> Related:
    """Read its pods, and the problems in its status."""
    job = msgspec.json.decode(raw, type=Job)
    chosen = LabelSelector(match_labels={_JOB_LABEL: job.metadata.uid})
    query = PodQuery(selector=chosen, keep=lambda pod: controls(job.metadata, pod.metadata))
    pods = await pods_of(api, query, job.metadata)
    troubles, surveyor = list(_told(job)), PodContextReader(api)
    if not pods and not any(one.type in _ENDED and one.status == "True" for one in job.status.conditions):
        troubles += await _refused(surveyor, job.metadata)
    return Related(pods=pods, troubles=troubles, basis=Around(now=now), denied=frozenset(surveyor.denied))


def _told(job: Job) -> Iterator[Group]:
    for one in job.status.conditions:
        if one.status == "True" and one.type in _TELLING:
            text = f"the Job {_TELLING[one.type]}: {bare(one.message) or one.reason}"
            yield Group(Cause(code=one.reason or one.type, message=text), (job.metadata.name,))


async def _refused(surveyor: PodContextReader, meta: ObjectMeta) -> list[Group]:
    """Find in its events why its controller creates no pods."""
    newest = await surveyor.refusal(meta)
    if newest is None:
        return []
    text = f"the Job has no pods: {bare(newest.message)}"
    return [Group(Cause(code=newest.reason, message=text), (meta.name,))]


VIEW = KindView(resource=JOB, related=_related)
