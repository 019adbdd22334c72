"""What belongs to a job that makes pods, and to the newest run of an AdvancedCronJob, a job of one of three kinds.

Nobody of ours looks after Kubernetes' own Jobs, so what stands in their way is read from them and their events.
"""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from flotilla_cli.diagnosis.closeup import Surveyor
from flotilla_cli.diagnosis.reading import all_nodes, selected
from flotilla_cli.diagnosis.scope import Scope, Served
from flotilla_common.api.batch import Job
from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.advancedcronjob.types import AdvancedCronJob
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB, NAME_LABEL, BroadcastJob
from flotilla_common.api.meta import LabelSelector, ObjectMeta, metadata_of
from flotilla_common.api.resources import JOB
from flotilla_common.kube.interface import Api
from flotilla_common.workload.causes import Around, Cause, Group
from flotilla_common.workload.causes.wording import bare
from flotilla_common.workload.placement import StrictPlacement

_JOB_LABEL = "batch.kubernetes.io/controller-uid"
_ENDED = ("Complete", "Failed")
_TELLING = {"Failed": "has failed", "FailureTarget": "is failing", "Suspended": "is suspended"}
"""Conditions of a Job that say why no pod does its work."""


async def of_broadcast_job(api: Api, raw: bytes, now: datetime) -> Scope:
    """Its pods, and all nodes, as each has had one or not."""
    job = msgspec.json.decode(raw, type=BroadcastJob)
    basis = Around(now=now)
    if job.status.verdict == "Complete":
        return Scope(basis=basis)
    chosen = LabelSelector(match_labels={NAME_LABEL: job.metadata.name})
    pods = _owned(await selected(api, job.metadata.namespace, chosen, most=0), job.metadata)
    scope = Scope(pods=pods, basis=basis)
    if job.status.verdict:
        return scope
    nodes = await all_nodes(api)
    if nodes is None:
        return msgspec.structs.replace(scope, denied=frozenset({"nodes"}))
    return msgspec.structs.replace(scope, served=_served(job, nodes, pods))


def _served(job: BroadcastJob, nodes: list[Node], pods: list[Pod]) -> Served | None:
    """None if the template cannot be read: then nothing is done for any node."""
    try:
        placement = StrictPlacement.of(job.spec.template)
    except ValueError:
        return None
    return Served(nodes=nodes, pods=pods, why_not=placement.why_not, once=True)


async def of_cron_job(api: Api, raw: bytes, now: datetime) -> Scope:
    """What belongs to its newest run."""
    cron_job = msgspec.json.decode(raw, type=AdvancedCronJob)
    resource, _ = cron_job.spec.template.chosen
    listed = [bytes(item) for item in (await api.list(resource, cron_job.metadata.namespace)).items]
    runs = [item for item in listed if _is_of(metadata_of(item), cron_job.metadata)]
    newest = max(runs, key=lambda item: metadata_of(item).creation_timestamp or now, default=None)
    if newest is None or resource not in (BROADCAST_JOB, JOB):
        return Scope(basis=Around(now=now))
    if resource == JOB:
        return await _of_job(api, newest, now)
    return msgspec.structs.replace(await of_broadcast_job(api, newest, now), served=None)


async def _of_job(api: Api, raw: bytes, now: datetime) -> Scope:
    """The pods of one of Kubernetes' Jobs, and what it says of itself."""
    job = msgspec.json.decode(raw, type=Job)
    chosen = LabelSelector(match_labels={_JOB_LABEL: job.metadata.uid})
    pods = _owned(await selected(api, job.metadata.namespace, chosen), job.metadata)
    troubles, surveyor = list(_told(job)), Surveyor(api)
    if not pods and not any(one.type in _ENDED and one.status == "True" for one in job.status.conditions):
        troubles += await _refused(surveyor, job.metadata)
    return Scope(pods=pods, troubles=troubles, basis=Around(now=now), denied=frozenset(surveyor.denied))


def _told(job: Job) -> Iterator[Group]:
    for one in job.status.conditions:
        if one.status == "True" and one.type in _TELLING:
            text = f"the Job {_TELLING[one.type]}: {bare(one.message) or one.reason}"
            yield Group(Cause(code=one.reason or one.type, message=text), (job.metadata.name,))


async def _refused(surveyor: Surveyor, meta: ObjectMeta) -> list[Group]:
    """Why its controller makes no pods, as its events tell."""
    told = [event for event in await surveyor.events(meta) if event.reason == "FailedCreate"]
    if not told:
        return []
    newest = max(told, key=lambda event: str(event.at))
    text = f"the Job has no pods: {bare(newest.message)}"
    return [Group(Cause(code=newest.reason, message=text), (meta.name,))]


def _owned(pods: list[Pod], owner: ObjectMeta) -> list[Pod]:
    return [pod for pod in pods if _is_of(pod.metadata, owner)]


def _is_of(meta: ObjectMeta, owner: ObjectMeta) -> bool:
    return any(one.controller and one.uid == owner.uid for one in meta.owner_references)
