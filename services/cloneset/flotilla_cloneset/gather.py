"""From mirror tables to snapshots: which objects belong to a CloneSet, and which CloneSet a change concerns."""

from collections.abc import Container, Iterable, Iterator, Mapping

import msgspec

from flotilla_cloneset.cloneset.snapshot import CloneSetSnapshot, Options
from flotilla_common.api.core import ControllerRevision, Node, PersistentVolumeClaim, Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.api.meta import Object, controller_of, group_of
from flotilla_common.api.resources import CLAIM, NODE, POD, REVISION
from flotilla_common.control.controller import Key, Memory
from flotilla_common.control.offline import Tables
from flotilla_common.gates import Gates
from flotilla_common.mirror.table import Table

OWNER = "owner"
"""Index: objects by the uid of every CloneSet that they refer to, controller or not (common.md §7.8)."""

ORPHANS = "orphans"
"""Index: objects without a controller, by namespace."""


def owner_uids(obj: Object) -> Iterable[str]:
    """The uids of the CloneSets among an object's owners."""
    return [uid for uid, _ in _owners(obj)]


def orphan_namespace(obj: Object) -> Iterable[str]:
    """The namespace of an object that nobody controls."""
    return [] if controller_of(obj.metadata) else [obj.metadata.namespace]


def keys_of(old: Object | None, new: Object | None) -> set[Key]:
    """The CloneSets that a change of a dependent concerns: its owners before and after."""
    if old is not None and new is not None and old.metadata.owner_references == new.metadata.owner_references:
        old = None  # they are the same, as nearly always
    return {(obj.metadata.namespace, name) for obj in (old, new) if obj is not None for _, name in _owners(obj)}


def _owners(obj: Object) -> Iterable[tuple[str, str]]:
    """(uid, name) of the owners that are CloneSets, whatever version the reference says."""
    return [
        (reference.uid, reference.name)
        for reference in obj.metadata.owner_references
        if reference.kind == CLONE_SET.kind and group_of(reference.api_version) == CLONE_SET.group
    ]


class CloneSetTables(msgspec.Struct, frozen=True):
    """What there is to plan with."""

    clonesets: Table[CloneSet]
    pods: Table[Pod]
    claims: Table[PersistentVolumeClaim]
    revisions: Table[ControllerRevision]
    nodes: Table[Node]
    pull_jobs: Table[ImagePullJob] | None = None  # where images are pulled ahead of updates

    @classmethod
    def of(cls, tables: Tables, pods: Table[Pod], *, pull_ahead: bool) -> "CloneSetTables":
        """The tables; that of `pods` is there already, others may use it too, and has the index OWNER."""
        return cls(
            clonesets=tables.add(CLONE_SET, CloneSet),
            pods=pods,
            claims=tables.add(CLAIM, PersistentVolumeClaim, {OWNER: owner_uids}),
            revisions=tables.add(REVISION, ControllerRevision, {OWNER: owner_uids, ORPHANS: orphan_namespace}),
            nodes=tables.add(NODE, Node),
            pull_jobs=tables.add(IMAGE_PULL_JOB, ImagePullJob, {OWNER: owner_uids}) if pull_ahead else None,
        )


class Gatherer:
    """Builds the snapshot of one CloneSet from the mirror's tables."""

    def __init__(self, tables: CloneSetTables, gates: Gates, options: Options) -> None:
        self._clonesets = tables.clonesets
        self._pods = tables.pods
        self._claims = tables.claims
        self._revisions = tables.revisions
        self._nodes = tables.nodes
        self._pull_jobs = tables.pull_jobs
        self._gates = gates
        self._options = options

    def keys(self) -> list[Key]:
        """All CloneSets."""
        return [(obj.metadata.namespace, obj.metadata.name) for obj in self._clonesets]

    def gather(self, key: Key, memory: Memory) -> CloneSetSnapshot | None:
        """The CloneSet and its surroundings; None when it does not exist."""
        cloneset = self._clonesets.get(*key)
        if cloneset is None:
            return None
        namespace, name = key
        uid = cloneset.metadata.uid
        return CloneSetSnapshot(
            cloneset=cloneset,
            pods=list(self._pods.by_index(OWNER, uid)),
            claims=list(self._claims.by_index(OWNER, uid)),
            taken_names=PodNames(self._pods, namespace),
            revisions=[*self._revisions.by_index(OWNER, uid), *self._revisions.by_index(ORPHANS, namespace)],
            node_labels=NodeLabels(self._nodes),
            pull_jobs=self._jobs_of(uid),
            gates=self._gates,
            options=self._options,
            failures=memory.failures,
            pending_ids=_pending_ids(name, memory),
        )

    def _jobs_of(self, uid: str) -> list[ImagePullJob] | None:
        """The ImagePullJobs that the CloneSet controls and that are not on their way out."""
        if self._pull_jobs is None:
            return None
        return [
            job
            for job in self._pull_jobs.by_index(OWNER, uid)
            if (owner := controller_of(job.metadata)) is not None
            and owner.uid == uid
            and job.metadata.deletion_timestamp is None
        ]


PULL_AHEAD = "PreDownloadImageForInPlaceUpdate"
"""The gate that has images pulled ahead of in-place updates."""


def _pending_ids(name: str, memory: Memory) -> tuple[str, ...]:
    """Ids of pods whose create has no known outcome. Revisions and claims may have names that look like such pods."""
    pods = (made for resource, made in memory.unconfirmed if resource == POD)
    return tuple(pod.removeprefix(f"{name}-") for pod in pods if pod.startswith(f"{name}-"))


class PodNames(Container[str]):
    """The names of all pods of one namespace."""

    def __init__(self, pods: Table[Pod], namespace: str) -> None:
        self._pods = pods
        self._namespace = namespace

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._pods.get(self._namespace, name) is not None


class NodeLabels(Mapping[str, Mapping[str, str]]):
    """Labels by node name, read from the mirror only when a rule asks for them."""

    def __init__(self, nodes: Table[Node]) -> None:
        self._nodes = nodes

    def __getitem__(self, name: str) -> Mapping[str, str]:
        node = self._nodes.get("", name)
        if node is None:
            raise KeyError(name)
        return node.metadata.labels

    def __iter__(self) -> Iterator[str]:
        return (node.metadata.name for node in self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)
