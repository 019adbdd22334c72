"""Workloads of Kubernetes with replicas.

They have no service of ours, so their problems are read from their status, their events and their pods.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from datetime import datetime

import msgspec

from flotilla_cli.diagnosis.pod_context import PodContextReader
from flotilla_cli.tree.workload import Numbers
from flotilla_cli.views.kindview import PodQuery, Related
from flotilla_cli.views.related import pods_of
from flotilla_common.api.meta import Condition, LabelSelector, Model, ObjectMeta
from flotilla_common.kube.interface import Api
from flotilla_common.workload.causes import Around, Cause, Group
from flotilla_common.workload.causes.text import bare

REPLICA_FAILURE = "ReplicaFailure"
"""The condition of Deployments and ReplicaSets that explains why no pods can be created."""


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
        workload, surveyor = BuiltIn.of(raw), PodContextReader(api)
        uids = await owners(api, workload)
        query = PodQuery(
            selector=workload.spec.selector,
            keep=lambda pod: any(owner.uid in uids for owner in pod.metadata.owner_references),
        )
        pods = await pods_of(api, query, workload.metadata)
        told = list(_told(kind, workload))
        if not told and len(pods) < workload.spec.replicas:
            told = await _refused(kind, workload, surveyor)
        basis = Around(now=now, min_ready_seconds=workload.spec.min_ready_seconds)
        return Related(pods=pods, troubles=told, basis=basis, denied=frozenset(surveyor.denied))

    return related


def _told(kind: str, workload: BuiltIn) -> Iterator[Group]:
    for one in workload.status.conditions:
        if (one.type, one.status) == (REPLICA_FAILURE, "True"):
            yield _cannot_create(kind, workload, one.reason, one.message)


async def _refused(kind: str, workload: BuiltIn, surveyor: PodContextReader) -> Sequence[Group]:
    refusal = await surveyor.refusal(workload.metadata)
    return [_cannot_create(kind, workload, refusal.reason, refusal.message)] if refusal is not None else []


def _cannot_create(kind: str, workload: BuiltIn, code: str, message: str) -> Group:
    return Group(Cause(code=code, message=f"the {kind} cannot create pods: {bare(message)}"), (workload.metadata.name,))
