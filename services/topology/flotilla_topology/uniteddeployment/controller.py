"""Declares the UnitedDeployment controller: its watches, its writes, and the gatherer of its snapshots."""

from collections.abc import Collection, Iterable, Iterator

from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_common.api.documents import Json, member, strings, typed
from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT, UnitedDeployment
from flotilla_common.api.meta import LabelSelector, Object, ObjectMeta, controller_of
from flotilla_common.api.resources import POD, REPLICA_SET, REVISION
from flotilla_common.api.selectors import Selector
from flotilla_common.api.workload import CONTROLLED, Workload, controller_uid
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import (
    IN_NAMESPACE,
    ORPHANS,
    Near,
    Pods,
    Trigger,
    Watch,
    namespace_of,
    orphan_namespace,
    owned,
    owner_keys,
)
from flotilla_topology.uniteddeployment.children import DEPLOYMENTS, KINDS, ChildKind, kind_of, subset_of
from flotilla_topology.uniteddeployment.plan import plan
from flotilla_topology.uniteddeployment.snapshot import UnitedDeploymentSnapshot


def _matches(owner: Json, obj: Json) -> bool:
    """Report whether the object may belong to the UnitedDeployment, by its labels."""
    mine, other = member(owner, "metadata"), member(obj, "metadata")
    try:
        selector = Selector.compile(typed(member(owner, "spec", "selector"), LabelSelector))
    except ValueError:
        return False
    return mine.get("namespace") == other.get("namespace") and selector.matches(strings(other.get("labels")))


UNITED_DEPLOYMENTS = Watch(
    UNITED_DEPLOYMENT, UnitedDeployment, indexes={IN_NAMESPACE: namespace_of}, subresources=("status",)
)
WORKLOADS = {
    kind.name: Watch(
        kind.resource,
        Workload,
        owner=UNITED_DEPLOYMENT,
        indexes={ORPHANS: orphan_namespace},
        writes=("create", "delete", "patch"),
        concerns=_matches,
    )
    for kind in KINDS
}
REPLICA_SETS = Watch(REPLICA_SET, Workload, indexes={CONTROLLED: controller_uid}, concerns=_matches)
PODS = Watch(
    POD,
    Pod,
    indexes={CONTROLLED: controller_uid},
    writes=("delete", "patch"),
    pods=Pods(near=(Near(UNITED_DEPLOYMENTS),)),
    concerns=_matches,
)
REVISIONS = Watch(
    REVISION,
    ControllerRevision,
    owner=UNITED_DEPLOYMENT,
    indexes={ORPHANS: orphan_namespace},
    writes=("create", "delete", "patch"),
)


class Gatherer:
    """Builds the snapshot of one UnitedDeployment from the mirror's tables."""

    def __init__(self, context: ControllerContext) -> None:
        self._owners = context.table(UNITED_DEPLOYMENTS)
        self._workloads = {name: context.table(watch) for name, watch in WORKLOADS.items()}
        self._replica_sets = context.table(REPLICA_SETS)
        self._pods = context.table(PODS)
        self._revisions = context.table(REVISIONS)

    def gather(self, key: Key, memory: Memory) -> UnitedDeploymentSnapshot | None:
        """Return the UnitedDeployment and its surroundings; None when it does not exist."""
        owner = self._owners.get(*key)
        if owner is None:
            return None
        meta, kind = owner.metadata, kind_of(owner.spec.template)
        workloads = {known.name: list(self._of_kind(known, meta)) for known in KINDS}
        return UnitedDeploymentSnapshot(
            owner=owner,
            workloads=workloads,
            pods={one.metadata.uid: list(self._pods_of(kind, one)) for one in workloads[kind.name]} if kind else {},
            taken_names=self._workloads[kind.name].names(meta.namespace) if kind else (),
            revisions=[
                *owned(self._revisions, UNITED_DEPLOYMENT, meta),
                *self._revisions.by_index(ORPHANS, meta.namespace),
            ],
            failures=memory.failures,
        )

    def _of_kind(self, kind: ChildKind, meta: ObjectMeta) -> Iterator[Workload]:
        table = self._workloads[kind.name]
        yield from owned(table, UNITED_DEPLOYMENT, meta)
        yield from (workload for workload in table.by_index(ORPHANS, meta.namespace) if subset_of(workload))

    def _pods_of(self, kind: ChildKind, workload: Workload) -> Iterator[Pod]:
        """Yield the pods that the workload controls; for a Deployment, through its ReplicaSets."""
        controllers: Collection[Object] = [workload]
        if kind is DEPLOYMENTS:
            controllers = self._replica_sets.by_index(CONTROLLED, workload.metadata.uid)
        for controller in controllers:
            pods = self._pods.by_index(CONTROLLED, controller.metadata.uid)
            yield from (pod for pod in pods if pod.metadata.namespace == workload.metadata.namespace)

    def of_pod(self, old: Pod | None, new: Pod | None) -> Iterable[Key]:
        """Return the UnitedDeployments whose children own the pod, unless no relevant field has changed."""
        if old is not None and new is not None and _seen(old) == _seen(new):
            return ()
        keys: set[Key] = set()
        for pod in (old, new):
            for uid in controller_uid(pod) if pod is not None else ():
                keys |= owner_keys(UNITED_DEPLOYMENT, None, self._workload(uid))
        return keys

    def of_replica_set(self, old: Workload | None, new: Workload | None) -> Iterable[Key]:
        """Return the UnitedDeployments of the Deployment that owns a ReplicaSet which was added or removed."""
        if old is not None and new is not None and old.metadata.owner_references == new.metadata.owner_references:
            return ()
        uids = {uid for replica_set in (old, new) if replica_set is not None for uid in controller_uid(replica_set)}
        return {key for uid in uids for key in owner_keys(UNITED_DEPLOYMENT, None, self._workload(uid))}

    def of_orphan(self, old: Workload | None, new: Workload | None) -> Iterable[Key]:
        """Return the UnitedDeployments that may adopt a workload without a controller."""
        del old
        if new is None or controller_of(new.metadata) is not None or not subset_of(new):
            return ()
        owners = self._owners.by_index(IN_NAMESPACE, new.metadata.namespace)
        return [owner.metadata.key for owner in owners if _selects(owner, new)]

    def _workload(self, uid: str) -> Workload | None:
        """Return the child with this uid, or the Deployment of the ReplicaSet with this uid."""
        replica_set = self._replica_sets.by_uid(uid)
        above = next(iter(controller_uid(replica_set)), "") if replica_set is not None else uid
        candidates = (table.by_uid(above) for table in self._workloads.values())
        return next((workload for workload in candidates if workload is not None), None)


def _selects(owner: UnitedDeployment, workload: Workload) -> bool:
    try:
        return Selector.compile(owner.spec.selector).matches(workload.metadata.labels)
    except ValueError:
        return False


def _seen(pod: Pod) -> tuple[object, ...]:
    """Return the fields of a pod that a UnitedDeployment depends on."""
    scheduled = pod.conditions.get("PodScheduled")
    return (
        pod.metadata.labels,
        pod.metadata.owner_references,
        pod.active,
        pod.ready_since,
        pod.status.phase,
        pod.spec.node_name,
        scheduled and (scheduled.status, scheduled.reason),
    )


CONTROLLER = ControllerSpec(
    name="uniteddeployment-controller",
    primary=UNITED_DEPLOYMENTS,
    watches=(*WORKLOADS.values(), REPLICA_SETS, PODS, REVISIONS),
    build=lambda context, options: Gatherer(context),
    triggers=lambda gatherer: [
        Trigger(PODS, gatherer.of_pod),
        Trigger(REPLICA_SETS, gatherer.of_replica_set),
        *(Trigger(watch, gatherer.of_orphan) for watch in WORKLOADS.values()),
    ],
    plan=plan,
)
