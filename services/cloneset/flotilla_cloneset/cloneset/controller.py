"""The CloneSet controller: what it watches and writes, and what it plans from."""

from collections.abc import Iterator, Mapping
from functools import partial

from flotilla_cloneset.cloneset.plan import plan
from flotilla_cloneset.cloneset.snapshot import CloneSetSnapshot, Options
from flotilla_common.api.core import ControllerRevision, Node, PersistentVolumeClaim, Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import CLAIM, NODE, POD, REVISION
from flotilla_common.control import spec
from flotilla_common.control.controller import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import ORPHANS, Watch, controlled, orphan_namespace, owned
from flotilla_common.control.wiring import Wiring
from flotilla_common.mirror.table import Table
from flotilla_common.settings import Settings

CLONE_SETS = Watch(CLONE_SET, CloneSet, writes=("patch",), subresources=("status",))
PODS = Watch(POD, Pod, owner=CLONE_SET, writes=("create", "delete", "patch"), subresources=("status", "resize"))
CLAIMS = Watch(CLAIM, PersistentVolumeClaim, owner=CLONE_SET, writes=("create", "delete", "patch"))
REVISIONS = Watch(
    REVISION,
    ControllerRevision,
    owner=CLONE_SET,
    indexes={ORPHANS: orphan_namespace},
    writes=("create", "delete", "patch"),
)
NODES = Watch(NODE, Node)
PULL_JOBS = Watch(
    IMAGE_PULL_JOB,
    ImagePullJob,
    owner=CLONE_SET,
    writes=("create", "delete"),
    gate="PreDownloadImageForInPlaceUpdate",
    optional=True,
)
"""Images that are pulled ahead of in-place updates."""


class Gatherer:
    """Builds the snapshot of one CloneSet from the mirror's tables."""

    def __init__(self, wiring: Wiring, options: Options) -> None:
        self._clonesets = wiring.table(CLONE_SETS)
        self._pods = wiring.table(PODS)
        self._claims = wiring.table(CLAIMS)
        self._revisions = wiring.table(REVISIONS)
        self._nodes = wiring.table(NODES)
        self._pull_jobs = wiring.table(PULL_JOBS)
        self._pulls_ahead = partial(wiring.watched, PULL_JOBS)
        self._gates = wiring.gates
        self._options = options

    def gather(self, key: Key, memory: Memory) -> CloneSetSnapshot | None:
        """The CloneSet and its surroundings; None when it does not exist."""
        cloneset = self._clonesets.get(*key)
        if cloneset is None:
            return None
        namespace, name = key
        meta = cloneset.metadata
        return CloneSetSnapshot(
            cloneset=cloneset,
            pods=list(owned(self._pods, CLONE_SET, meta)),
            claims=list(owned(self._claims, CLONE_SET, meta)),
            taken_names=self._pods.names(namespace),
            revisions=[*owned(self._revisions, CLONE_SET, meta), *self._revisions.by_index(ORPHANS, namespace)],
            node_labels=NodeLabels(self._nodes),
            pull_jobs=self._jobs_of(meta),
            gates=self._gates,
            options=self._options,
            failures=memory.failures,
            pending_ids=_pending_ids(name, memory),
        )

    def _jobs_of(self, meta: ObjectMeta) -> list[ImagePullJob] | None:
        """The ImagePullJobs that the CloneSet controls and that are not on their way out."""
        if not self._pulls_ahead():
            return None
        return controlled(self._pull_jobs, CLONE_SET, meta)


def _pending_ids(name: str, memory: Memory) -> tuple[str, ...]:
    """Ids of pods whose create has no known outcome. Revisions and claims may have names that look like such pods."""
    pods = (made for resource, made in memory.unconfirmed if resource == POD)
    return tuple(pod.removeprefix(f"{name}-") for pod in pods if pod.startswith(f"{name}-"))


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


def options(settings: Settings, server_version: str) -> Options:
    """The settings that decide about plans."""
    return Options(
        exclude_preparing_delete=settings.cloneset_scaling_exclude_preparing_delete,
        system_namespace=settings.namespace,
        drop_field_owners=not settings.keep_managed_fields,
        server_version=server_version,
    )


CONTROLLER = ControllerSpec(
    name="cloneset-controller",
    primary=CLONE_SETS,
    watches=(PODS, CLAIMS, REVISIONS, NODES, PULL_JOBS),
    options=spec.Options(Options, options),
    build=Gatherer,
    plan=plan,
)
