"""Declares the DaemonSet controller: its watches, its writes, and the gatherer of its snapshots."""

from collections.abc import Iterable

from flotilla_common.api.core import ControllerRevision, Node, Pod
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, DaemonSet
from flotilla_common.api.meta import ObjectMeta, controller_of
from flotilla_common.api.resources import NODE, POD
from flotilla_common.control import spec
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import (
    IN_NAMESPACE,
    ORPHANS,
    Pods,
    Trigger,
    Watch,
    namespace_of,
    orphan_namespace,
    owned,
)
from flotilla_common.settings import Settings
from flotilla_common.workload.gathering import (
    BUDGETS,
    BudgetsOfPods,
    PullsAhead,
    revisions_of,
    watch_pulls,
    watch_revisions,
)
from flotilla_common.workload.pernode import Departed
from flotilla_daemonset.daemonset.plan import plan
from flotilla_daemonset.daemonset.snapshot import DaemonSetSnapshot, Options, record_deletion

NAMESAKES = "namesakes"
"""Index: revisions by `namespace/<name without its hash>`. They occupy a name even if others own them."""


def name_before_hash(revision: ControllerRevision) -> Iterable[str]:
    """Return namespace and owner name of the revision, assuming the usual form of its name."""
    return [f"{revision.metadata.namespace}/{revision.metadata.name.rpartition('-')[0]}"]


DAEMON_SETS = Watch(DAEMON_SET, DaemonSet, indexes={IN_NAMESPACE: namespace_of}, subresources=("status",))
PODS = Watch(
    POD,
    Pod,
    owner=DAEMON_SET,
    indexes={ORPHANS: orphan_namespace},
    writes=("create", "delete", "patch"),
    subresources=("status", "resize"),
    pods=Pods(owners=(DAEMON_SET,), orphans=True),
)
NODES = Watch(NODE, Node, concerns=lambda daemonset, node: True)
REVISIONS = watch_revisions(DAEMON_SET, **{NAMESAKES: name_before_hash})
PULL_JOBS = watch_pulls(DAEMON_SET, gate="PreDownloadImageForDaemonSetUpdate")
"""Jobs that pull images ahead of updates."""


class Gatherer:
    """Builds the snapshot of one DaemonSet from the mirror's tables."""

    def __init__(self, context: ControllerContext, options: Options) -> None:
        self._daemonsets = context.table(DAEMON_SETS)
        self._pods = context.table(PODS)
        self._nodes = context.table(NODES)
        self._revisions = context.table(REVISIONS)
        self._pulls_ahead = PullsAhead(context, PULL_JOBS, DAEMON_SET)
        self._previous_pods = Departed(
            self._daemonsets,
            self._pods,
            lambda daemonset, pod, before: record_deletion(daemonset, pod, before, context.clock.now()),
        )
        self.budgets = BudgetsOfPods(context)
        self._gates = context.gates
        self._options = options

    def gather(self, key: Key, memory: Memory) -> DaemonSetSnapshot | None:
        """Return the DaemonSet and its surroundings; None when it does not exist."""
        daemonset = self._daemonsets.get(*key)
        if daemonset is None:
            return None
        meta = daemonset.metadata
        pods = list(owned(self._pods, DAEMON_SET, meta))
        return DaemonSetSnapshot(
            daemonset=daemonset,
            nodes=list(self._nodes),
            pods=pods,
            orphans=list(self._pods.by_index(ORPHANS, meta.namespace)),
            taken_names=self._pods.names(meta.namespace),
            previous_pods=self._previous_pods.of(meta.uid),
            revisions=self._revisions_of(meta),
            pull_jobs=self._pulls_ahead.of(meta),
            budgets=self.budgets.of(key, pods),
            gates=self._gates,
            options=self._options,
            failures=memory.failures,
        )

    def _revisions_of(self, meta: ObjectMeta) -> list[ControllerRevision]:
        revisions = (
            *revisions_of(self._revisions, DAEMON_SET, meta),
            *self._revisions.by_index(NAMESAKES, f"{meta.namespace}/{meta.name}"),
        )
        return list({revision.metadata.uid: revision for revision in revisions}.values())

    def of_node(self, old: Node | None, new: Node | None) -> list[Key]:
        """Return all DaemonSets, unless a change of the node (a heartbeat, say) cannot affect placement."""
        if old is not None and new is not None and _suits(old) == _suits(new):
            return []
        return self._daemonsets.keys()

    def of_orphan(self, old: Pod | None, new: Pod | None) -> list[Key]:
        """Return the DaemonSets that may adopt the pod."""
        if new is None or controller_of(new.metadata) is not None:
            return []
        if old is not None and controller_of(old.metadata) is None and old.metadata.labels == new.metadata.labels:
            return []
        daemonsets = self._daemonsets.by_index(IN_NAMESPACE, new.metadata.namespace)
        return [daemonset.metadata.key for daemonset in daemonsets]


def _suits(node: Node) -> tuple[object, ...]:
    """Return the fields of a node that decide whether it gets pods."""
    return node.metadata.labels, node.spec.taints


def options(settings: Settings, server_version: str) -> Options:
    """Return the settings that affect plans."""
    return Options.of(settings, server_version, assign_by_scheduler=settings.assign_pods_by_scheduler)


CONTROLLER = ControllerSpec(
    name="daemonset-controller",
    primary=DAEMON_SETS,
    watches=(PODS, NODES, REVISIONS, PULL_JOBS, BUDGETS),
    options=spec.Options(Options, options),
    build=Gatherer,
    triggers=lambda gatherer: [
        Trigger(NODES, gatherer.of_node),
        Trigger(PODS, gatherer.of_orphan),
        Trigger(BUDGETS, gatherer.budgets.of_budget),
    ],
    plan=plan,
)
