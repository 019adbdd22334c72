"""Watches and lookups that the controllers of workloads share: revisions, images pulled ahead, budgets, settings."""

from collections.abc import Iterable, Mapping
from typing import Any, Self

import msgspec

from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_common.api.documents import Json, member
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET, PodUnavailableBudget
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import REVISION, Resource
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key
from flotilla_common.control.watches import ORPHANS, Watch, controlled, orphan_namespace, owned
from flotilla_common.mirror.table import Indexer, Table
from flotilla_common.settings import Settings
from flotilla_common.workload.budget import related_budget


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the service that change decisions."""

    system_namespace: str = "kruise-system"  # Flotilla's own namespace: its pods get no KruisePodReady gate
    drop_field_owners: bool = True  # clear managedFields of pods that are updated in place (docs/adr/0006)
    server_version: str = ""  # gitVersion of the apiserver: decides how cpu and memory are resized in place

    @classmethod
    def of(cls, settings: Settings, server_version: str, **own: Any) -> Self:
        """Return the settings that affect plans; `own` are those of the kind."""
        return cls(
            system_namespace=settings.namespace,
            drop_field_owners=not settings.keep_managed_fields,
            server_version=server_version,
            **own,
        )


def watch_revisions(kind: Resource, **indexes: Indexer[ControllerRevision]) -> Watch[ControllerRevision]:
    """Watch the revisions of workloads of the kind, and those without a controller."""
    return Watch(
        REVISION,
        ControllerRevision,
        owner=kind,
        indexes={ORPHANS: orphan_namespace, **indexes},
        writes=("create", "delete", "patch"),
    )


def revisions_of(table: Table[ControllerRevision], kind: Resource, meta: ObjectMeta) -> list[ControllerRevision]:
    """Return the workload's revisions, and all revisions of its namespace without a controller."""
    return [*owned(table, kind, meta), *table.by_index(ORPHANS, meta.namespace)]


def watch_pulls(kind: Resource, gate: str) -> Watch[ImagePullJob]:
    """Watch the images that are pulled ahead of updates of the kind."""
    return Watch(IMAGE_PULL_JOB, ImagePullJob, owner=kind, writes=("create", "delete"), gate=gate, optional=True)


class PullsAhead:
    """A finder of the images that are pulled ahead for workloads of one kind."""

    def __init__(self, context: ControllerContext, watch: Watch[ImagePullJob], kind: Resource) -> None:
        self._table = context.table(watch)
        self._watched = lambda: context.watched(watch)
        self._kind = kind

    def of(self, meta: ObjectMeta) -> list[ImagePullJob] | None:
        """Return the ImagePullJobs that the workload controls and that stay; None where images are not pulled ahead."""
        return controlled(self._table, self._kind, meta) if self._watched() else None


def _may_protect(workload: Json, budget: Json) -> bool:
    """Return whether the budget may protect pods of the workload: it is in its namespace, or that has none."""
    namespace = member(workload, "metadata").get("namespace")
    return namespace is None or namespace == member(budget, "metadata").get("namespace")


BUDGETS = Watch(
    POD_UNAVAILABLE_BUDGET,
    PodUnavailableBudget,
    subresources=("status",),
    conditional=True,
    optional=True,
    concerns=_may_protect,
)
"""The budgets that keep workloads from disrupting too many pods at once."""


class BudgetsOfPods:
    """A finder of the budgets of a workload's pods, which plans the workload again once they allow more."""

    def __init__(self, context: ControllerContext) -> None:
        self._table = context.table(BUDGETS)
        self._asked: dict[Key, set[Key]] = {}  # by budget, the workloads that were planned with it

    def of(self, key: Key, pods: Iterable[Pod]) -> Mapping[Key, PodUnavailableBudget]:
        """Return the budgets that the pods of the workload name, by namespace and name."""
        if not len(self._table):
            return {}
        named = {(pod.metadata.namespace, related_budget(pod.metadata)) for pod in pods}
        found = {one: budget for one in named if (budget := self._table.get(*one)) is not None}
        for one in found:
            self._asked.setdefault(one, set()).add(key)
        return found

    def of_budget(self, old: PodUnavailableBudget | None, new: PodUnavailableBudget | None) -> Iterable[Key]:
        """Return the workloads that were planned with the budget, if it allows more than before."""
        if old is None or (new is not None and not _allows_more(old, new)):
            return ()
        return self._asked.pop(old.metadata.key, ())


def _allows_more(old: PodUnavailableBudget, new: PodUnavailableBudget) -> bool:
    if old.spec != new.spec or old.metadata.annotations != new.metadata.annotations:
        return True
    before, after = old.status, new.status
    return after.unavailable_allowed > before.unavailable_allowed or after.desired_available < before.desired_available
