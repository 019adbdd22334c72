"""Declares the WorkloadSpread controller: its watches, its writes, and the gatherer of its snapshots."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.documents import Json, member
from flotilla_common.api.keys import DEPLOYMENT_REVISION, TEMPLATE_HASH_LABEL
from flotilla_common.api.kinds.workloadspread.book import Versioned, matched_of, version_of
from flotilla_common.api.kinds.workloadspread.targets import DEPLOYMENTS, SPREAD, replicas_path
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD, WorkloadSpread
from flotilla_common.api.meta import Object, controller_of
from flotilla_common.api.resources import DEPLOYMENT, NODE, POD, REPLICA_SET, Resource
from flotilla_common.api.workload import CONTROLLED, Workload, controller_uid
from flotilla_common.control import spec
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Near, Pods, Trigger, Watch
from flotilla_common.settings import Settings
from flotilla_topology.workloadspread.custom import CONFIGURATIONS, TARGET, CustomTarget, CustomTargets, Unknown
from flotilla_topology.workloadspread.plan import plan
from flotilla_topology.workloadspread.snapshot import Target, WorkloadSpreadSnapshot, latest_version, target_of

SPREAD_BY = "spread by"
"""Index: pods by namespace and name of their WorkloadSpread."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the service that change decisions."""

    versioned: Versioned = Versioned()


def target_index(spread: WorkloadSpread) -> Iterable[tuple[str, ...]]:
    """Return the index key of the target workload, regardless of its API version."""
    return [(spread.metadata.namespace, *spread.spec.target_ref.identity)]


def spread_by(pod: Pod) -> Iterable[tuple[str, str]]:
    """Return the key of the pod's WorkloadSpread, if it has one."""
    matched = matched_of(pod.metadata.annotations)
    return [(pod.metadata.namespace, matched.name)] if matched is not None else []


def _in_its_namespace(spread: Json, other: Json) -> bool:
    return member(spread, "metadata").get("namespace") == member(other, "metadata").get("namespace")


SPREADS = Watch(WORKLOAD_SPREAD, WorkloadSpread, indexes={TARGET: target_index}, subresources=("status",))
WORKLOADS = {
    resource: Watch(resource, Workload, indexes={CONTROLLED: controller_uid}, concerns=_in_its_namespace)
    for resource in SPREAD
}
PODS = Watch(
    POD,
    Pod,
    indexes={CONTROLLED: controller_uid, SPREAD_BY: spread_by},
    writes=("delete", "patch"),
    pods=Pods(near=(Near(SPREADS),)),
    concerns=_in_its_namespace,
)
NODES = Watch(NODE, Node, concerns=lambda spread, node: True)


class Gatherer:
    """Builds the snapshot of one WorkloadSpread from the mirror's tables."""

    def __init__(self, context: ControllerContext, options: Options) -> None:
        self._spreads = context.table(SPREADS)
        self._workloads = {resource: context.table(watch) for resource, watch in WORKLOADS.items()}
        self._pods = context.table(PODS)
        self._nodes = context.table(NODES)
        self._options = options
        self.custom = CustomTargets(context, self._spreads)

    def gather(self, key: Key, memory: Memory) -> WorkloadSpreadSnapshot | None:
        """Return the WorkloadSpread and its surroundings; None when it does not exist."""
        spread = self._spreads.get(*key)
        if spread is None:
            self.custom.forget(key)
            return None
        snapshot = WorkloadSpreadSnapshot(spread=spread)
        group, kind, name = spread.spec.target_ref.identity
        resource = next((resource for resource in WORKLOADS if (resource.group, resource.kind) == (group, kind)), None)
        try:
            if resource is None:
                return self._with_custom(snapshot)
            workload = self._workloads[resource].get(key[0], name)
            if workload is None or workload.metadata.deletion_timestamp is not None:
                return snapshot
            target = self._target(resource, workload, spread)
            return self._with_pods(snapshot, target, list(self._pods_of(resource, workload)))
        except ValueError as error:
            return msgspec.structs.replace(snapshot, unreadable=str(error))
        except Unknown as reason:
            return msgspec.structs.replace(snapshot, unfollowed=str(reason))

    def _with_custom(self, snapshot: WorkloadSpreadSnapshot) -> WorkloadSpreadSnapshot:
        """Return the snapshot with a workload of a configured kind. Raises Unknown, ValueError."""
        workload = self.custom.find(snapshot.spread)
        if workload is None or workload.metadata.deletion_timestamp is not None:
            return snapshot
        target = Target(replicas=self.custom.replicas(snapshot.spread, workload), ordered=False)
        return self._with_pods(snapshot, target, self._pods_of_custom(snapshot.spread, workload))

    def _with_pods(
        self, snapshot: WorkloadSpreadSnapshot, target: Target, pods: Sequence[Pod]
    ) -> WorkloadSpreadSnapshot:
        return msgspec.structs.replace(
            snapshot,
            target=target,
            pods=pods,
            versions={pod.metadata.uid: self._version(pod) for pod in pods},
            nodes=dict(self._nodes_of(pods)),
        )

    def _target(self, resource: Resource, workload: Workload, spread: WorkloadSpread) -> Target:
        kind = resource.group, resource.kind
        chosen = spread.spec.target_filter
        paths = replicas_path(kind, (), chosen.replicas_path_list if chosen is not None else ())
        tracked = self._options.versioned.tracks(resource.kind)
        if not tracked:
            return target_of(resource, workload, paths, latest=Target().latest, tracked=False)
        latest = latest_version(kind, workload, self._newest_hash(workload) if kind == DEPLOYMENTS else None)
        return target_of(resource, workload, paths, latest=latest, tracked=workload.document.get("paused") is not True)

    def _newest_hash(self, deployment: Workload) -> str | None:
        """Return the hash of the ReplicaSet with the number of the Deployment's newest revision."""
        number = deployment.metadata.annotations.get(DEPLOYMENT_REVISION)
        for replica_set in self._workloads[REPLICA_SET].by_index(CONTROLLED, deployment.metadata.uid):
            if number and replica_set.metadata.annotations.get(DEPLOYMENT_REVISION) == number:
                return replica_set.metadata.labels.get(TEMPLATE_HASH_LABEL)
        return None

    def _pods_of(self, resource: Resource, workload: Workload) -> Iterator[Pod]:
        controllers: Iterable[Object] = [workload]
        if resource == DEPLOYMENT:
            replica_sets = self._workloads[REPLICA_SET].by_index(CONTROLLED, workload.metadata.uid)
            controllers = [one for one in replica_sets if one.metadata.deletion_timestamp is None]
        for controller in controllers:
            pods = self._pods.by_index(CONTROLLED, controller.metadata.uid)
            yield from (pod for pod in pods if pod.metadata.namespace == workload.metadata.namespace)

    def _pods_of_custom(self, spread: WorkloadSpread, workload: CustomTarget) -> list[Pod]:
        """Return the workload's own pods, or else the pods that it selects, and indirect ones. Raises Unknown.

        The webhook has marked the indirect ones with the WorkloadSpread.
        """
        namespace, name = spread.metadata.key
        pods = list(self._pods.by_index(CONTROLLED, workload.metadata.uid))
        if not pods and (selector := self.custom.selector(spread, workload)) is not None:
            in_namespace = (pod for pod in self._pods if pod.metadata.namespace == namespace)
            pods = [pod for pod in in_namespace if selector.matches(pod.metadata.labels)]
        uids = {pod.metadata.uid for pod in pods}
        marked = self._pods.by_index(SPREAD_BY, (namespace, name))
        below = (pod for pod in marked if pod.metadata.uid not in uids and self.custom.is_below(pod, spread))
        return [*pods, *below]

    def _version(self, pod: Pod) -> str:
        controller = controller_of(pod.metadata)
        tracked = controller is not None and self._options.versioned.tracks(controller.kind)
        return version_of(pod.metadata.labels, tracked=tracked)

    def _nodes_of(self, pods: Iterable[Pod]) -> Iterator[tuple[str, Node]]:
        for name in {pod.spec.node_name for pod in pods if pod.spec.node_name}:
            node = self._nodes.get("", name)
            if node is not None:
                yield name, node

    # Keys that a change affects

    def of_workload(self, resource: Resource, old: Workload | None, new: Workload | None) -> Iterable[Key]:
        """Return the WorkloadSpreads of the workload, or of the Deployment of a ReplicaSet."""
        workload = new or old
        if workload is None or (old is not None and new is not None and _seen(old) == _seen(new)):
            return ()
        meta = workload.metadata
        places = [(meta.namespace, resource.group, resource.kind, meta.name)]
        controller = controller_of(meta)
        if controller is not None and resource == REPLICA_SET:
            places.append((meta.namespace, *DEPLOYMENTS, controller.name))
        return [spread.metadata.key for place in places for spread in self._spreads.by_index(TARGET, place)]

    def of_pod(self, old: Pod | None, new: Pod | None) -> Iterable[Key]:
        """Return the WorkloadSpread that the pod is matched with, and those of its workload."""
        if not len(self._spreads) or (old is not None and new is not None and _seen_pod(old) == _seen_pod(new)):
            return ()
        keys: set[Key] = set()
        for pod in (old, new):
            if pod is None:
                continue
            keys.update(spread_by(pod))
            keys.update(self._of_owner(pod))
        return [key for key in keys if self._spreads.get(*key) is not None]

    def _of_owner(self, pod: Pod) -> Iterator[Key]:
        for uid in controller_uid(pod):
            for resource, table in self._workloads.items():
                workload = table.by_uid(uid)
                if workload is not None:
                    yield from self.of_workload(resource, None, workload)
            yield from self.custom.of_owner(uid)


def _seen(workload: Workload) -> tuple[object, ...]:
    """Return the fields of a workload that a WorkloadSpread depends on."""
    meta, status = workload.metadata, workload.status
    return (
        workload.spec,
        meta.deletion_timestamp,
        meta.annotations.get(DEPLOYMENT_REVISION),
        status.observed_generation >= meta.generation,
        status.update_revision,
    )


def _seen_pod(pod: Pod) -> tuple[object, ...]:
    """Return the fields of a pod that a WorkloadSpread depends on."""
    scheduled = pod.conditions.get("PodScheduled")
    return (
        pod.metadata.labels,
        pod.metadata.annotations,
        pod.metadata.owner_references,
        pod.active,
        pod.spec.node_name,
        pod.ready,
        scheduled and (scheduled.status, scheduled.reason),
    )


def options(settings: Settings, server_version: str) -> Options:
    """Return the settings that affect plans."""
    return Options(versioned=Versioned.of(settings.ws_enabled_versioned_status))


CONTROLLER = ControllerSpec(
    name="workloadspread-controller",
    primary=SPREADS,
    watches=(*WORKLOADS.values(), PODS, NODES, CONFIGURATIONS),
    options=spec.Options(Options, options),
    build=Gatherer,
    triggers=lambda gatherer: [
        *(Trigger(watch, partial(gatherer.of_workload, resource)) for resource, watch in WORKLOADS.items()),
        Trigger(PODS, gatherer.of_pod),
        Trigger(CONFIGURATIONS, gatherer.custom.of_configuration),
    ],
    plan=plan,
)
