"""Share among the controllers of workloads what they watch and read alike: revisions, images pulled ahead, settings."""

from typing import Any, Self

import msgspec

from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import REVISION, Resource
from flotilla_common.control.watches import ORPHANS, Watch, controlled, orphan_namespace, owned
from flotilla_common.control.wiring import Wiring
from flotilla_common.mirror.table import Indexer, Table
from flotilla_common.settings import Settings


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the service that change decisions."""

    system_namespace: str = "kruise-system"  # Flotilla's own namespace: its pods get no KruisePodReady gate
    drop_field_owners: bool = True  # clear managedFields of pods that are updated in place (docs/adr/0006)
    server_version: str = ""  # gitVersion of the apiserver: how cpu and memory are resized in place

    @classmethod
    def of(cls, settings: Settings, server_version: str, **own: Any) -> Self:
        """Return the settings that decide about plans; `own`: those of the kind."""
        return cls(
            system_namespace=settings.namespace,
            drop_field_owners=not settings.keep_managed_fields,
            server_version=server_version,
            **own,
        )


def watch_revisions(kind: Resource, **indexes: Indexer[ControllerRevision]) -> Watch[ControllerRevision]:
    """Watch the revisions of workloads of the kind, and those that nobody controls."""
    return Watch(
        REVISION,
        ControllerRevision,
        owner=kind,
        indexes={ORPHANS: orphan_namespace, **indexes},
        writes=("create", "delete", "patch"),
    )


def revisions_of(table: Table[ControllerRevision], kind: Resource, meta: ObjectMeta) -> list[ControllerRevision]:
    """Return the workload's revisions, and all of its namespace that nobody controls."""
    return [*owned(table, kind, meta), *table.by_index(ORPHANS, meta.namespace)]


def watch_pulls(kind: Resource, gate: str) -> Watch[ImagePullJob]:
    """Watch the images that are pulled ahead of updates of the kind."""
    return Watch(IMAGE_PULL_JOB, ImagePullJob, owner=kind, writes=("create", "delete"), gate=gate, optional=True)


class PullsAhead:
    """Finds the images that are pulled ahead for workloads of one kind."""

    def __init__(self, wiring: Wiring, watch: Watch[ImagePullJob], kind: Resource) -> None:
        self._table = wiring.table(watch)
        self._watched = lambda: wiring.watched(watch)
        self._kind = kind

    def of(self, meta: ObjectMeta) -> list[ImagePullJob] | None:
        """Return the ImagePullJobs that the workload controls and that stay; None where images are not pulled ahead."""
        return controlled(self._table, self._kind, meta) if self._watched() else None
