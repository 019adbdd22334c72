"""Declares the PersistentPodState controller: its watches, its writes, and the gatherer of its snapshots."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from flotilla_common.api.core import ConfigMap, Node, Pod
from flotilla_common.api.documents import Json, member
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.keys import CONFIGURATION
from flotilla_common.api.kinds.persistentpodstate.types import (
    PERSISTENT_POD_STATE,
    CustomWorkload,
    PersistentPodState,
    custom_workloads,
)
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET, StatefulSet
from flotilla_common.api.meta import Object, controller_of, group_of, metadata_of
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, CONFIG_MAP, NODE, POD, Resource
from flotilla_common.clock import Clock
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.customkinds import CustomKinds, GroupKind, configured
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.reads import Get, Reads
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Near, Pods, Trigger, Watch
from flotilla_common.mirror.table import Table
from flotilla_statefulset.persistentpodstate.generate import asking_among, asks
from flotilla_statefulset.persistentpodstate.plan import plan
from flotilla_statefulset.persistentpodstate.snapshot import (
    BuiltInStatefulSet,
    ConfirmedRead,
    NumberedWorkload,
    StateSnapshot,
    Workload,
    workload_of,
)

TARGET = "target"
"""Index: PersistentPodStates by namespace, group, kind and name of their workload."""

OWNERS = "owners"
"""Index: pods by namespace and by the uids of all their owners, of any kind."""


Workloads = Table[StatefulSet] | Table[BuiltInStatefulSet] | Table[NumberedWorkload]


def target_of(state: PersistentPodState) -> Iterable[tuple[str, ...]]:
    """Return the index key of the target workload, regardless of its API version."""
    return [(state.metadata.namespace, *state.spec.target_ref.identity)]


def owner_uids(pod: Pod) -> Iterable[tuple[str, str]]:
    """Return namespace and uid of each owner. A later object of the same name has another uid."""
    return [(pod.metadata.namespace, reference.uid) for reference in pod.metadata.owner_references]


def _may_be_its_workload(state: Json, workload: Json) -> bool:
    mine, other = member(state, "metadata"), member(workload, "metadata")
    names = (mine.get("name"), member(state, "spec", "targetRef").get("name"))
    return mine.get("namespace") == other.get("namespace") and other.get("name") in names


def _in_its_namespace(state: Json, pod: Json) -> bool:
    return member(state, "metadata").get("namespace") == member(pod, "metadata").get("namespace")


STATES = Watch(
    PERSISTENT_POD_STATE,
    PersistentPodState,
    indexes={TARGET: target_of},
    writes=("create", "delete", "patch"),
    subresources=("status",),
)
BUILT_IN_SETS = Watch(BUILT_IN_STATEFUL_SET, BuiltInStatefulSet, concerns=_may_be_its_workload)
SETS = Watch(STATEFUL_SET, StatefulSet, concerns=_may_be_its_workload)
PODS = Watch(POD, Pod, indexes={OWNERS: owner_uids}, pods=Pods(near=(Near(STATES),)), concerns=_in_its_namespace)
NODES = Watch(NODE, Node, concerns=lambda state, node: True)
CONFIGURATIONS = Watch(CONFIG_MAP, ConfigMap, private="namespace")
"""ConfigMaps of Flotilla's own namespace, one of which names more kinds of workloads."""


class Gatherer:
    """Builds the snapshot of one PersistentPodState, or of a name for which a workload requests one."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._states = context.table(STATES)
        self._pods = context.table(PODS)
        self._nodes = context.table(NODES)
        self._configurations = context.table(CONFIGURATIONS)
        self._own: Mapping[Resource, Workloads] = {
            BUILT_IN_STATEFUL_SET: context.table(BUILT_IN_SETS),
            STATEFUL_SET: context.table(SETS),
        }
        self._missed: dict[str, set[Key]] = {}  # nodes that were not found, with the keys that need them
        self._confirm_reads = ConfirmReads(context.get, context.clock, context.requeue)
        self._custom = CustomKinds(
            lambda: context.api,
            NumberedWorkload,
            context.clock,
            wanted=self._configured,
            needed=self._needed,
            listener=self._custom_changed,
            changed=self._kind_changed,
        )
        context.add_task(self._confirm_reads.run)
        context.add_task(self._custom.run)

    def keys(self) -> list[Key]:
        """Return every PersistentPodState, and every workload that requests one."""
        asking = [obj.metadata.key for table in self._tables().values() for obj in table if asks(obj.metadata)]
        return list(dict.fromkeys([*self._states.keys(), *asking]))

    def gather(self, key: Key, memory: Memory) -> StateSnapshot | None:
        """Return the PersistentPodState and its surroundings; None when it neither exists nor is requested."""
        state, namesakes = self._states.get(*key), self._namesakes(key)
        snapshot = StateSnapshot(namespace=key[0], name=key[1], state=state, namesakes=namesakes)
        if state is not None:
            return self._with_target(snapshot, state)
        self._confirm_reads.forget(key)
        if not any(asks(workload.metadata) for workload in namesakes):
            return None
        return msgspec.structs.replace(snapshot, rival=self._rival(key, namesakes))

    def _with_target(self, snapshot: StateSnapshot, state: PersistentPodState) -> StateSnapshot:
        target, unfollowed = self._target(state)
        pods = [] if target is None else list(self._pods.by_index(OWNERS, (snapshot.namespace, target.metadata.uid)))
        return msgspec.structs.replace(
            snapshot,
            target=target,
            unfollowed=unfollowed,
            confirmed_read=self._confirmed_read(snapshot, state, target, unfollowed),
            pods=pods,
            nodes=dict(self._nodes_of(pods, (snapshot.namespace, snapshot.name))),
        )

    def _tables(self) -> dict[Resource, Workloads]:
        """Return the tables of workloads by resource, the built-in kinds first."""
        return {**self._own, **dict(self._custom.tables())}

    def _namesakes(self, key: Key) -> list[Workload]:
        namesakes = ((resource, table.get(*key)) for resource, table in self._tables().items())
        return [self._workload(resource, obj) for resource, obj in namesakes if obj is not None]

    def _workload(self, resource: Resource, obj: Object) -> Workload:
        return workload_of(resource, obj, self._context.gates)

    def _rival(self, key: Key, namesakes: Sequence[Workload]) -> str:
        """Return the name of another PersistentPodState for the namesake that would get this one; else ""."""
        for workload in asking_among(namesakes)[:1]:
            for other in self._states.by_index(TARGET, (key[0], *workload.reference.identity)):
                return other.metadata.name
        return ""

    def _target(self, state: PersistentPodState) -> tuple[Workload | None, str]:
        """Return the workload, or why workloads of that kind are not watched."""
        group, kind, name = state.spec.target_ref.identity
        for resource, table in self._tables().items():
            if (resource.group, resource.kind) == (group, kind):
                obj = table.get(state.metadata.namespace, name)
                return (None if obj is None else self._workload(resource, obj)), ""
        return None, self._custom.trouble((group, kind))

    def _confirmed_read(
        self, snapshot: StateSnapshot, state: PersistentPodState, target: Workload | None, unfollowed: str
    ) -> ConfirmedRead | None:
        """Read the workload from the apiserver if its state is about to cause a deletion."""
        controller = controller_of(state.metadata)
        for workload in snapshot.namesakes:
            if controller is not None and workload.metadata.uid == controller.uid and not asks(workload.metadata):
                return self._confirm_reads.of(state, workload.resource, workload.metadata.name)
        if target is None and not unfollowed and state.status.pod_states:
            group, kind, name = state.spec.target_ref.identity
            resource = next(known for known in self._tables() if (known.group, known.kind) == (group, kind))
            return self._confirm_reads.of(state, resource, name)
        self._confirm_reads.forget((snapshot.namespace, snapshot.name))
        return None

    def _nodes_of(self, pods: Sequence[Pod], key: Key) -> Iterator[tuple[str, Node]]:
        for name in {pod.spec.node_name for pod in pods if pod.spec.node_name}:
            node = self._nodes.get("", name)
            if node is not None:
                yield name, node
            else:
                self._missed.setdefault(name, set()).add(key)

    def _configured(self) -> list[CustomWorkload]:
        """Return the kinds that the ConfigMap names; none if it is unreadable, which admission reports."""
        return configured(self._configurations.get(self._context.settings.namespace, CONFIGURATION), custom_workloads)

    def _needed(self, kind: GroupKind) -> list[Key]:
        """Return the workloads of the kind that PersistentPodStates target."""
        targets = ((state.metadata.namespace, state.spec.target_ref) for state in self._states)
        return [(namespace, target.name) for namespace, target in targets if target.identity[:2] == kind]

    # Keys that a change affects

    def of_workload(self, resource: Resource, old: Object | None, new: Object | None) -> list[Key]:
        """Return the states that target the workload, and the one that it requests or that was made for it."""
        if (obj := new or old) is None:
            return []
        key = obj.metadata.key
        target = (key[0], resource.group, resource.kind, key[1])
        states = [state.metadata.key for state in self._states.by_index(TARGET, target)]
        asked = any(asks(obj.metadata) for obj in (old, new) if obj is not None)
        return [*states, key] if asked or self._states.get(*key) is not None else states

    def of_rival(self, old: PersistentPodState | None, new: PersistentPodState | None) -> list[Key]:
        """Return the workloads that the states target: such a state keeps a workload from getting its own."""
        states = [state for state in (old, new) if state is not None]
        return [(state.metadata.namespace, state.spec.target_ref.name) for state in states]

    def of_pod(self, old: Pod | None, new: Pod | None) -> list[Key]:
        pod = new or old
        owner = controller_of(pod.metadata) if pod is not None else None
        if pod is None or owner is None:
            return []
        target = (pod.metadata.namespace, group_of(owner.api_version), owner.kind, owner.name)
        return [state.metadata.key for state in self._states.by_index(TARGET, target)]

    def of_node(self, old: Node | None, new: Node | None) -> Iterable[Key]:
        """Return the keys that need a node which has just appeared."""
        return self._missed.pop(new.metadata.name, ()) if new is not None else ()

    def _custom_changed(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        for key in self.of_workload(resource, old, new):
            self._context.requeue(*key)

    def _kind_changed(self, kind: GroupKind) -> None:
        for state in self._states:
            if state.spec.target_ref.identity[:2] == kind:
                self._context.requeue(*state.metadata.key)


class Question(NamedTuple):
    """A question to the apiserver, and the version of the PersistentPodState that raised it."""

    resource: Resource
    namespace: str
    name: str
    version: str


class ConfirmReads:
    """Reads a workload from the apiserver before records or a PersistentPodState are deleted because of it.

    A workload and the state of its pods come in different streams, so a mirror may receive one before the other. An
    answer is valid for the version of the PersistentPodState that was current when the question was asked: writes that
    follow from it are conditional on that version.
    """

    def __init__(self, get: Get, clock: Clock, requeue: Callable[[str, str], None]) -> None:
        """Take `get`, which reads an object, and `requeue`, which plans the asking key again."""
        self._get = get
        self._reads = Reads(self._read, clock, requeue)
        self.forget, self.run = self._reads.forget, self._reads.run

    def of(self, state: PersistentPodState, resource: Resource, name: str) -> ConfirmedRead | None:
        """Return the apiserver's answer about the workload; None until it arrives, which plans the asking key again."""
        meta = state.metadata
        return self._reads.ask_only(meta.key, Question(resource, meta.namespace, name, meta.resource_version))

    async def _read(self, question: Question) -> ConfirmedRead:
        found = await found_or_none(self._get(*question[:3]))
        return ConfirmedRead(None if found is None else metadata_of(found))


CONTROLLER = ControllerSpec(
    name="persistentpodstate-controller",
    primary=STATES,
    watches=(BUILT_IN_SETS, SETS, PODS, NODES, CONFIGURATIONS),
    build=lambda context, options: Gatherer(context),
    triggers=lambda gatherer: [
        Trigger(STATES, gatherer.of_rival),
        Trigger(BUILT_IN_SETS, partial(gatherer.of_workload, BUILT_IN_STATEFUL_SET)),
        Trigger(SETS, partial(gatherer.of_workload, STATEFUL_SET)),
        Trigger(PODS, gatherer.of_pod),
        Trigger(NODES, gatherer.of_node),
    ],
    keys=Gatherer.keys,
    plan=plan,
)
