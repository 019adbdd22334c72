"""Kinds of Kubernetes: Deployments with their ReplicaSets as revisions, StatefulSets by ordinal, and Jobs.

They have no service of ours, so their problems are read from their status, their events and their pods.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.batch import Job
from flotilla_common.api.core import Pod
from flotilla_common.api.meta import Condition, LabelSelector, Model, ObjectMeta, controller_of, metadata_of
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, JOB, REPLICA_SET
from flotilla_common.kube.interface import Api
from flotilla_common.workload.causes import Cause, Group, PodContext
from flotilla_common.workload.causes.cause import bare
from flotilla_insight.pods.findings import PodContextReader
from flotilla_insight.views.kindview import KindView, PodQuery, Related
from flotilla_insight.views.related import controls, pods_of
from flotilla_insight.views.statefulset import by_ordinal
from flotilla_insight.workload import Numbers, Workload

REPLICA_FAILURE = "ReplicaFailure"
"""The condition of Deployments and ReplicaSets that explains why no pods can be created."""

_JOB_LABEL = "batch.kubernetes.io/controller-uid"
_JOB_ENDED = ("Complete", "Failed")
_JOB_TROUBLES = {"Failed": "has failed", "FailureTarget": "is failing", "Suspended": "is suspended"}
"""Conditions of a Job that explain why no pod does its work."""


class RollingUpdate(Model):
    partition: int = 0  # of StatefulSets


class UpdateStrategy(Model):
    type: str = ""
    rolling_update: RollingUpdate | None = None


class BuiltInSpec(Model):
    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    min_ready_seconds: int = 0
    paused: bool = False
    update_strategy: UpdateStrategy = UpdateStrategy()


class BuiltInStatus(Model):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    conditions: list[Condition] = []


class BuiltIn(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: BuiltInSpec = BuiltInSpec()
    status: BuiltInStatus = BuiltInStatus()

    @classmethod
    def of(cls, raw: bytes) -> "BuiltIn":
        """Decode a workload."""
        return msgspec.json.decode(raw, type=cls)

    def numbers(self, held: int = 0) -> Numbers:
        """Return its numbers; `held`: pods that stay on old revisions."""
        status = self.status
        return Numbers(
            desired=self.spec.replicas,
            total=status.replicas,
            ready=status.ready_replicas,
            available=status.available_replicas,
            updated=status.updated_replicas,
            expected_updated=max(self.spec.replicas - held, 0),
        )


Owners = Callable[[Api, BuiltIn], Awaitable[Collection[str]]]
"""Reads the uids of the owners of a workload's pods."""


async def itself(_: Api, workload: BuiltIn) -> Collection[str]:
    """Return the uid of the workload: it owns its pods."""
    return {workload.metadata.uid}


def reading(kind: str, owners: Owners = itself) -> Callable[[Api, bytes, datetime], Awaitable[Related]]:
    """Return a function that reads the pods of such a workload, and why there are not more of them."""

    async def related(api: Api, raw: bytes, now: datetime) -> Related:
        workload, reader = BuiltIn.of(raw), PodContextReader(api)
        uids = await owners(api, workload)
        query = PodQuery(
            selector=workload.spec.selector,
            keep=lambda pod: any(owner.uid in uids for owner in pod.metadata.owner_references),
        )
        pods = await pods_of(api, query, workload.metadata)
        troubles = list(_failures(kind, workload))
        if not troubles and len(pods) < workload.spec.replicas:
            troubles = await _refusal(kind, workload, reader)
        basis = PodContext(now=now, min_ready_seconds=workload.spec.min_ready_seconds)
        return Related(pods=pods, troubles=troubles, basis=basis, denied=frozenset(reader.denied))

    return related


def _failures(kind: str, workload: BuiltIn) -> Iterator[Group]:
    for one in workload.status.conditions:
        if (one.type, one.status) == (REPLICA_FAILURE, "True"):
            yield _cannot_create(kind, workload, one.reason, one.message)


async def _refusal(kind: str, workload: BuiltIn, reader: PodContextReader) -> Sequence[Group]:
    refusal = await reader.refusal(workload.metadata)
    return [_cannot_create(kind, workload, refusal.reason, refusal.message)] if refusal is not None else []


def _cannot_create(kind: str, workload: BuiltIn, code: str, message: str) -> Group:
    return Group(Cause(code=code, message=f"the {kind} cannot create pods: {bare(message)}"), (workload.metadata.name,))


def deployment(raw: bytes) -> Workload:
    """Read a Deployment as a workload. Its newest revision is known from its ReplicaSets only."""
    found = BuiltIn.of(raw)
    return Workload(
        kind=DEPLOYMENT.kind,
        metadata=found.metadata,
        selector=found.spec.selector,
        numbers=found.numbers(),
        observed_generation=found.status.observed_generation,
        update_revision="",
        current_revision="",
        paused=found.spec.paused,
        min_ready_seconds=found.spec.min_ready_seconds,
        revision_of=_replica_set_of,
    )


def _replica_set_of(pod: Pod) -> str:
    controller = controller_of(pod.metadata)
    return controller.name if controller is not None else ""


async def _replica_sets(api: Api, workload: BuiltIn) -> Collection[str]:
    """Return the uids of its ReplicaSets."""
    found = map(metadata_of, (await api.list(REPLICA_SET, workload.metadata.namespace)).items)
    return {meta.uid for meta in found if controls(workload.metadata, meta)}


def stateful_set(raw: bytes) -> Workload:
    """Read a StatefulSet as a workload."""
    found = BuiltIn.of(raw)
    strategy = found.spec.update_strategy
    partition = (strategy.rolling_update or RollingUpdate()).partition
    return Workload(
        kind=BUILT_IN_STATEFUL_SET.kind,
        metadata=found.metadata,
        selector=found.spec.selector,
        numbers=found.numbers(partition),
        observed_generation=found.status.observed_generation,
        update_revision=found.status.update_revision,
        current_revision=found.status.current_revision,
        partition=partition,
        on_delete=strategy.type == "OnDelete",
        min_ready_seconds=found.spec.min_ready_seconds,
        order=by_ordinal,
    )


async def _job_related(api: Api, raw: bytes, now: datetime) -> Related:
    """Read its pods, and the problems in its status."""
    job = msgspec.json.decode(raw, type=Job)
    chosen = LabelSelector(match_labels={_JOB_LABEL: job.metadata.uid})
    query = PodQuery(selector=chosen, keep=lambda pod: controls(job.metadata, pod.metadata))
    pods = await pods_of(api, query, job.metadata)
    troubles, reader = list(_job_failures(job)), PodContextReader(api)
    if not pods and not any(one.type in _JOB_ENDED and one.status == "True" for one in job.status.conditions):
        troubles += await _job_refusal(reader, job.metadata)
    return Related(pods=pods, troubles=troubles, basis=PodContext(now=now), denied=frozenset(reader.denied))


def _job_failures(job: Job) -> Iterator[Group]:
    for one in job.status.conditions:
        if one.status == "True" and one.type in _JOB_TROUBLES:
            text = f"the Job {_JOB_TROUBLES[one.type]}: {bare(one.message) or one.reason}"
            yield Group(Cause(code=one.reason or one.type, message=text), (job.metadata.name,))


async def _job_refusal(reader: PodContextReader, meta: ObjectMeta) -> list[Group]:
    """Find in its events why its controller creates no pods."""
    newest = await reader.refusal(meta)
    if newest is None:
        return []
    text = f"the Job has no pods: {bare(newest.message)}"
    return [Group(Cause(code=newest.reason, message=text), (meta.name,))]


VIEWS = (
    KindView(
        resource=DEPLOYMENT,
        workload=deployment,
        revisions=REPLICA_SET,
        related=reading(DEPLOYMENT.kind, _replica_sets),
    ),
    KindView(resource=REPLICA_SET, related=reading(REPLICA_SET.kind)),
    KindView(
        resource=BUILT_IN_STATEFUL_SET,
        workload=stateful_set,
        related=reading(BUILT_IN_STATEFUL_SET.kind),
    ),
    KindView(resource=JOB, related=_job_related),
)
