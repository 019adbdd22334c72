"""Selects the budgets to plan after a change (podunavailablebudget.md §7.1)."""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from flotilla_common.api.core import ConfigMap, Pod
from flotilla_common.api.kinds.podunavailablebudget.types import PodUnavailableBudget
from flotilla_common.api.meta import controller_of, group_of
from flotilla_common.api.resources import DEPLOYMENT, REPLICA_SET, Resource
from flotilla_common.api.selectors import Selector
from flotilla_common.api.workload import Workload
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key
from flotilla_common.control.watches import IN_NAMESPACE
from flotilla_common.gates import Gates
from flotilla_common.mirror.table import Table
from flotilla_common.workload.budget import is_recorded, related_budget
from flotilla_policy.podunavailablebudget.snapshot import serves

TERMINATION_SECONDS = 5.0
"""The delay after a pod with taken budget began to terminate. The status already counts it as unavailable."""

_Identity = tuple[str, str, str]


class _Due(NamedTuple):
    at: float  # monotonic seconds
    key: Key


class Triggers:
    """Finds the budgets that a change affects, in the tables of the controller."""

    def __init__(
        self,
        context: ControllerContext,
        budgets: Table[PodUnavailableBudget],
        workloads: Mapping[Resource, Table[Workload]],
    ) -> None:
        self._context = context
        self._budgets = budgets
        self._workloads = workloads
        self._selectors: dict[str, Selector | None] = {}  # by the uid of the budget: its selector never changes
        self._delayed = DelayedQueue(context)

    def of_budget(self, old: PodUnavailableBudget | None, new: PodUnavailableBudget | None) -> list[Key]:
        """Return the other budgets of the namespace when one is gone: its pods may belong to them."""
        if old is None or new is not None:
            return []
        self._selectors.pop(old.metadata.uid, None)
        return [budget.metadata.key for budget in self._budgets.by_index(IN_NAMESPACE, old.metadata.namespace)]

    def of_configuration(self, old: ConfigMap | None, new: ConfigMap | None) -> list[Key]:
        """Return all budgets: the configuration says which kinds of workloads have a scale."""
        return self._budgets.keys()

    def of_pod(self, old: Pod | None, new: Pod | None) -> Iterable[Key]:
        """Return the budgets that count the pod, or counted it before."""
        pod = new or old
        if pod is None or not self._budgets.by_index(IN_NAMESPACE, pod.metadata.namespace):
            return []
        gates = self._context.gates
        if old is not None and (_pod_fields(old, gates) == (None if new is None else _pod_fields(new, gates))):
            return []
        if new is None and not pod.active and pod.metadata.deletion_timestamp is None:
            return []
        keys = {key for version in (old, new) if version is not None for key in self._counting(version)}
        if old is None or new is None or not (old.active and new.metadata.deletion_timestamp is not None):
            return keys
        return [key for key in keys if not self._is_delayed(key, new)]

    def of_workload(self, resource: Resource, old: Workload | None, new: Workload | None) -> Iterable[Key]:
        """Return the budgets that target the workload, or select its pods."""
        workload = new or old
        if workload is None or (old is not None and new is not None and _workload_fields(old) == _workload_fields(new)):
            return []
        meta = workload.metadata
        identities = {(resource.group, resource.kind, meta.name)}
        owner = controller_of(meta)
        if owner is not None and resource == REPLICA_SET:
            identities.add((DEPLOYMENT.group, DEPLOYMENT.kind, owner.name))
        budgets = self._budgets.by_index(IN_NAMESPACE, meta.namespace)
        labels = workload.pod_labels if budgets else {}
        return [budget.metadata.key for budget in budgets if self._is_about(budget, labels, identities)]

    def _counting(self, pod: Pod) -> Iterator[Key]:
        namespace = pod.metadata.namespace
        named = related_budget(pod.metadata)
        above = set(self._above(pod))
        for budget in self._budgets.by_index(IN_NAMESPACE, namespace):
            if budget.metadata.name == named or self._is_about(budget, pod.metadata.labels, above):
                yield budget.metadata.key

    def _above(self, pod: Pod) -> Iterator[_Identity]:
        """Yield group, kind and name of the pod's controller, and of the Deployment of a ReplicaSet."""
        owner = controller_of(pod.metadata)
        while owner is not None:
            group = group_of(owner.api_version)
            yield group, owner.kind, owner.name
            is_replica_set = (group, owner.kind) == (REPLICA_SET.group, REPLICA_SET.kind)
            replica_set = self._workloads[REPLICA_SET].by_uid(owner.uid) if is_replica_set else None
            owner = controller_of(replica_set.metadata) if replica_set is not None else None

    def _is_about(self, budget: PodUnavailableBudget, labels: Mapping[str, str], above: set[_Identity]) -> bool:
        if budget.spec.target_ref is not None:
            return budget.spec.target_ref.identity in above
        selector = self._selector(budget)
        return selector is not None and selector.matches(labels)

    def _selector(self, budget: PodUnavailableBudget) -> Selector | None:
        """Return the selector of the budget's pods; None if it has none, or an unreadable one."""
        uid, given = budget.metadata.uid, budget.spec.selector
        if uid not in self._selectors:
            try:
                selector = None if given is None else Selector.compile(given)
            except ValueError:
                selector = None
            self._selectors[uid] = None if selector is None or selector.empty else selector
        return self._selectors[uid]

    def _is_delayed(self, key: Key, pod: Pod) -> bool:
        """Delay planning of the budget if its numbers already include the pod's end, and report whether they do."""
        budget = self._budgets.get(*key)
        if budget is None or not is_recorded(budget.status, pod):
            return False
        self._delayed.plan(key)
        return True


class DelayedQueue:
    """A queue of budgets to be planned after a delay."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._due: deque[_Due] = deque()
        self._wake = asyncio.Event()
        context.add_task(self._run)

    def plan(self, key: Key) -> None:
        """Plan the budget in `TERMINATION_SECONDS`, unless that was scheduled within the last second."""
        at = self._context.clock.monotonic() + TERMINATION_SECONDS
        if not self._due or self._due[-1].key != key or self._due[-1].at < at - 1:
            self._due.append(_Due(at, key))
            self._wake.set()

    async def _run(self) -> None:
        clock = self._context.clock
        while True:
            while self._due:
                await clock.sleep(max(self._due[0].at - clock.monotonic(), 0))
                self._context.requeue(*self._due.popleft().key)
            await self._wake.wait()
            self._wake.clear()


def _pod_fields(pod: Pod, gates: Gates) -> tuple[object, ...]:
    """Return the fields of a pod that a budget depends on."""
    meta = pod.metadata
    return meta.labels, related_budget(meta), meta.owner_references, pod.active, serves(pod, gates)


def _workload_fields(workload: Workload) -> tuple[object, ...]:
    """Return the fields of a workload that a budget depends on."""
    return workload.replicas, workload.metadata.deletion_timestamp
