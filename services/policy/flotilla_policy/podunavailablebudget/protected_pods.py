"""Finds the pods that a budget protects, and the expected number of them (podunavailablebudget.md §5.3)."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.podunavailablebudget.types import PodUnavailableBudget
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.meta import LabelSelector, Object, OwnerReference, TargetRef, controller_of, group_of
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, REPLICA_SET, Resource
from flotilla_common.api.selectors import Selector
from flotilla_common.api.workload import Workload
from flotilla_common.control.customkinds import GroupKind
from flotilla_common.control.watches import IN_NAMESPACE
from flotilla_common.mirror.table import Table
from flotilla_common.workload.budget import protected_replicas
from flotilla_policy.podunavailablebudget.lookups import UNKNOWN, Reference, Session, WorkloadInfo
from flotilla_policy.podunavailablebudget.snapshot import Counted

MIRRORED = (DEPLOYMENT, REPLICA_SET, BUILT_IN_STATEFUL_SET, CLONE_SET, STATEFUL_SET)
"""The kinds of workloads that are watched."""

OWNERS = "owners"
"""Index: objects by namespace and by the uids of all their owners, of any kind."""

_KINDS: Mapping[GroupKind, Resource] = {(one.group, one.kind): one for one in MIRRORED}


def owner_uids(obj: Object) -> Iterable[tuple[str, str]]:
    """Return namespace and uid of each owner."""
    return [(obj.metadata.namespace, reference.uid) for reference in obj.metadata.owner_references]


def resource_of(group: str, kind: str) -> Resource | None:
    """Return the resource of a mirrored kind; None for others."""
    return _KINDS.get((group, kind))


class Members(msgspec.Struct, frozen=True, kw_only=True):
    """The pods and workloads that were found for a budget."""

    pods: list[Pod] = []
    terminating: list[Pod] = []
    workloads: list[Counted] = []
    expected: int = 0


class Pending(Exception):
    """A question to the apiserver that has not been answered yet."""


class Unresolvable(Exception):
    """A workload that neither the tables nor the apiserver identify."""


class _Resolved(msgspec.Struct, frozen=True):
    """A workload that exists."""

    kind: str
    name: str
    info: WorkloadInfo
    resource: Resource | None = None  # None: not mirrored


class ProtectedPods:
    """Finds the pods of one budget in tables, and at the apiserver if these do not suffice."""

    def __init__(
        self,
        budget: PodUnavailableBudget,
        pods: Table[Pod],
        workloads: Mapping[Resource, Table[Workload]],
        session: Session,
    ) -> None:
        self._budget = budget
        self._namespace = budget.metadata.namespace
        self._pods = pods
        self._workloads = workloads
        self._session = session

    def find(self) -> Members:
        """Return the pods and the expected number.

        Raises Pending, Unresolvable, and ValueError for an unreadable selector.
        """
        spec = self._budget.spec
        if spec.target_ref is not None:
            return self._of_target(spec.target_ref)
        return self._of_selector(spec.selector)

    def _of_selector(self, selector: LabelSelector | None) -> Members:
        pods, terminating = _split([] if selector is None else self._selected(Selector.compile(selector)))
        protected = protected_replicas(self._budget)
        if protected is not None:
            return Members(pods=pods, terminating=terminating, expected=protected)
        workloads = list(self._controllers(pods))
        expected = sum(workload.info.replicas for workload in workloads)
        self._confirm(workloads, expected)
        counted = [_counted(workload) for workload in workloads]
        return Members(pods=pods, terminating=terminating, workloads=counted, expected=expected)

    def _of_target(self, target: TargetRef) -> Members:
        resolved = self._resolve(target.api_version, target.kind, target.name)
        if resolved is None:
            return Members()
        replicas, protected = resolved.info.replicas, protected_replicas(self._budget)
        expected = replicas if protected is None or replicas == 0 else protected
        self._confirm([resolved], expected)
        pods, terminating = _split(self._owned(target, resolved) if replicas else [])
        return Members(pods=pods, terminating=terminating, workloads=[_counted(resolved)], expected=expected)

    def _selected(self, selector: Selector) -> Iterator[Pod]:
        """Yield the selected pods that have not finished; an empty selector selects none."""
        for pod in () if selector.empty else self._pods.by_index(IN_NAMESPACE, self._namespace):
            if not _has_ended(pod) and selector.matches(pod.metadata.labels):
                yield pod

    def _controllers(self, pods: Iterable[Pod]) -> Iterator[_Resolved]:
        """Yield the workloads of the pods, each once. Raises Pending after asking about all of them."""
        owners = {owner.uid: owner for pod in pods if (owner := controller_of(pod.metadata)) is not None}
        seen: set[str] = set()
        pending: Pending | None = None
        for owner in owners.values():
            try:
                resolved = self._resolve(owner.api_version, owner.kind, owner.name, owner.uid)
            except Pending as asked:
                pending = asked
                continue
            if resolved is not None and resolved.info.uid not in seen:
                seen.add(resolved.info.uid)
                yield resolved
        if pending is not None:
            raise pending

    def _owned(self, target: TargetRef, resolved: _Resolved) -> Iterable[Pod]:
        """Return the pods of the workload that have not finished."""
        pods = [pod for uid in self._owner_uids(target, resolved) for pod in self._of_owner(uid)]
        has_active = any(pod.active for pod in pods)
        if not has_active and resolved.resource is None and resolved.info.selector is not None:
            return self._selected(resolved.info.selector)
        return pods

    def _owner_uids(self, target: TargetRef, resolved: _Resolved) -> Iterator[str]:
        if resolved.resource == DEPLOYMENT and target.kind == REPLICA_SET.kind:
            named = self._workloads[REPLICA_SET].get(self._namespace, target.name)
            yield from [] if named is None else [named.metadata.uid]
        elif resolved.resource == DEPLOYMENT:
            for replica_set in self._workloads[REPLICA_SET].by_index(OWNERS, (self._namespace, resolved.info.uid)):
                controller = controller_of(replica_set.metadata)
                is_its = controller is not None and controller.uid == resolved.info.uid
                if is_its and replica_set.metadata.deletion_timestamp is None:
                    yield replica_set.metadata.uid
        else:
            yield resolved.info.uid

    def _of_owner(self, uid: str) -> list[Pod]:
        return [pod for pod in self._pods.by_index(OWNERS, (self._namespace, uid)) if not _has_ended(pod)]

    def _resolve(self, api_version: str, kind: str, name: str, uid: str = "") -> _Resolved | None:
        """Return the workload; None if it does not exist. Raises Pending, Unresolvable."""
        resource = resource_of(group_of(api_version), kind)
        if resource is not None:
            return self._mirrored(resource, name, uid)
        info = self._session.workload(Reference(api_version, kind, name, uid))
        if info is None:
            raise Pending(f"{kind} {name}")
        if info.fault:
            raise Unresolvable(info.fault)
        return _Resolved(kind, name, info) if info.uid else None

    def _mirrored(self, resource: Resource, name: str, uid: str) -> _Resolved | None:
        workload = self._existing(resource, name, uid)
        if workload is None or workload.metadata.deletion_timestamp is not None:
            return None
        owner = controller_of(workload.metadata)
        if resource == REPLICA_SET and owner is not None and _is_deployment(owner):
            above = self._existing(DEPLOYMENT, owner.name, owner.uid)
            if above is None:  # it was just deleted, and the ReplicaSet will follow
                return _Resolved(resource.kind, name, WorkloadInfo(workload.metadata.uid, UNKNOWN), resource)
            if above.metadata.deletion_timestamp is not None:
                return None
            resource, workload = DEPLOYMENT, above
        meta = workload.metadata
        return _Resolved(resource.kind, meta.name, WorkloadInfo(meta.uid, workload.replicas), resource)

    def _existing(self, resource: Resource, name: str, uid: str) -> Workload | None:
        """Return the object. If the mirror does not have it, ask the apiserver before it counts as gone."""
        mirrored = self._workloads[resource].get(self._namespace, name)
        if mirrored is not None and uid in ("", mirrored.metadata.uid):
            return mirrored
        if not self._session.was_read(resource, name):
            raise Pending(f"{resource.kind} {name}")
        return None

    def _confirm(self, workloads: Iterable[_Resolved], expected: int) -> None:
        """Read the workloads before fewer pods are expected than the status shows. Raises Pending.

        The mirror may be older than the status, and fewer pods make a larger budget.
        """
        if expected >= self._budget.status.total_replicas:
            return
        mirrored = [workload for workload in workloads if workload.resource is not None]
        unread = [
            workload
            for workload in mirrored
            if workload.resource and not self._session.was_read(workload.resource, workload.name)
        ]
        if unread:
            raise Pending(f"{unread[0].kind} {unread[0].name}")


def _has_ended(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def _split(pods: Iterable[Pod]) -> tuple[list[Pod], list[Pod]]:
    """Split the pods, none of which has finished, into (active, terminating)."""
    active: list[Pod] = []
    terminating: list[Pod] = []
    for pod in pods:
        (active if pod.active else terminating).append(pod)
    return active, terminating


def _is_deployment(owner: OwnerReference) -> bool:
    return (group_of(owner.api_version), owner.kind) == (DEPLOYMENT.group, DEPLOYMENT.kind)


def _counted(resolved: _Resolved) -> Counted:
    return Counted(resolved.kind, resolved.name, resolved.info.replicas)
