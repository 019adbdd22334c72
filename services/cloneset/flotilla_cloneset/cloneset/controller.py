"""Declares the CloneSet controller: its watches, its writes, and the gatherer of its snapshots."""

from collections.abc import Iterator, Mapping

from flotilla_cloneset.cloneset.plan import plan
from flotilla_cloneset.cloneset.snapshot import CloneSetSnapshot, Options
from flotilla_common.api.core import Node, PersistentVolumeClaim, Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.resources import CLAIM, NODE, POD
from flotilla_common.control import spec
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Pods, Trigger, Watch, owned
from flotilla_common.mirror.table import Table
from flotilla_common.settings import Settings
from flotilla_common.workload.gathering import (
    BUDGETS,
    BudgetsOfPods,
    PullsAhead,
    revisions_of,
    watch_pulls,
    watch_revisions,
)

CLONE_SETS = Watch(CLONE_SET, CloneSet, writes=("patch",), subresources=("status",))
PODS = Watch(
    POD,
    Pod,
    owner=CLONE_SET,
    writes=("create", "delete", "patch"),
    subresources=("status", "resize"),
    pods=Pods(owners=(CLONE_SET,)),
)
CLAIMS = Watch(CLAIM, PersistentVolumeClaim, owner=CLONE_SET, writes=("create", "delete", "patch"))
REVISIONS = watch_revisions(CLONE_SET)
NODES = Watch(NODE, Node)
PULL_JOBS = watch_pulls(CLONE_SET, gate="PreDownloadImageForInPlaceUpdate")
"""Jobs that pull images ahead of in-place updates."""


class Gatherer:
    """Builds the snapshot of one CloneSet from the mirror's tables."""

    def __init__(self, context: ControllerContext, options: Options) -> None:
        self._clonesets = context.table(CLONE_SETS)
        self._pods = context.table(PODS)
        self._claims = context.table(CLAIMS)
        self._revisions = context.table(REVISIONS)
        self._nodes = context.table(NODES)
        self._pulls_ahead = PullsAhead(context, PULL_JOBS, CLONE_SET)
        self.budgets = BudgetsOfPods(context)
        self._gates = context.gates
        self._options = options

    def gather(self, key: Key, memory: Memory) -> CloneSetSnapshot | None:
        """Return the CloneSet and its surroundings; None when it does not exist."""
        cloneset = self._clonesets.get(*key)
        if cloneset is None:
            return None
        namespace, name = key
        meta = cloneset.metadata
        pods = list(owned(self._pods, CLONE_SET, meta))
        return CloneSetSnapshot(
            cloneset=cloneset,
            pods=pods,
            claims=list(owned(self._claims, CLONE_SET, meta)),
            taken_names=self._pods.names(namespace),
            revisions=revisions_of(self._revisions, CLONE_SET, meta),
            node_labels=NodeLabels(self._nodes),
            pull_jobs=self._pulls_ahead.of(meta),
            budgets=self.budgets.of(key, pods),
            gates=self._gates,
            options=self._options,
            failures=memory.failures,
            notes=memory.notes,
            pending_ids=_pending_ids(name, memory),
        )


def _pending_ids(name: str, memory: Memory) -> tuple[str, ...]:
    """Return the ids of pods whose create has no known outcome."""
    # Unconfirmed revisions and claims may have names that look like such pods.
    pods = (made for resource, made in memory.unconfirmed if resource == POD)
    return tuple(pod.removeprefix(f"{name}-") for pod in pods if pod.startswith(f"{name}-"))


class NodeLabels(Mapping[str, Mapping[str, str]]):
    """Labels by node name, read from the mirror only on access."""

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
    """Return the settings that affect plans."""
    exclude = settings.cloneset_scaling_exclude_preparing_delete
    return Options.of(settings, server_version, exclude_preparing_delete=exclude)


CONTROLLER = ControllerSpec(
    name="cloneset-controller",
    primary=CLONE_SETS,
    watches=(PODS, CLAIMS, REVISIONS, NODES, PULL_JOBS, BUDGETS),
    options=spec.Options(Options, options),
    build=Gatherer,
    triggers=lambda gatherer: [Trigger(BUDGETS, gatherer.budgets.of_budget)],
    plan=plan,
)
