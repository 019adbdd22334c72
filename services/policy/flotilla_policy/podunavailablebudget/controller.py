"""Declares the PodUnavailableBudget controller: its watches, its writes, and the gatherer of its snapshots."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import msgspec

from flotilla_common.api.core import ConfigMap, Pod
from flotilla_common.api.documents import Json, member
from flotilla_common.api.keys import CONFIGURATION
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.kinds.persistentpodstate.types import custom_workloads
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET, PodUnavailableBudget
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import CONFIG_MAP, JOB, POD, Resource
from flotilla_common.api.workload import Workload
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.customkinds import GroupKind, configured
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import IN_NAMESPACE, AccessRule, Near, Pods, Trigger, Watch, namespace_of
from flotilla_common.workload.budget import related_budget
from flotilla_policy.podunavailablebudget.entries import in_doubt
from flotilla_policy.podunavailablebudget.lookups import Lookups, Session
from flotilla_policy.podunavailablebudget.plan import plan
from flotilla_policy.podunavailablebudget.protected_pods import (
    MIRRORED,
    OWNERS,
    Pending,
    ProtectedPods,
    Unresolvable,
    owner_uids,
)
from flotilla_policy.podunavailablebudget.snapshot import BudgetSnapshot
from flotilla_policy.podunavailablebudget.triggers import Triggers


def _in_its_namespace(budget: Json, other: Json) -> bool:
    return member(budget, "metadata").get("namespace") == member(other, "metadata").get("namespace")


BUDGETS = Watch(
    POD_UNAVAILABLE_BUDGET,
    PodUnavailableBudget,
    indexes={IN_NAMESPACE: namespace_of},
    subresources=("status",),
    concerns=_in_its_namespace,
)
PODS = Watch(
    POD,
    Pod,
    indexes={IN_NAMESPACE: namespace_of, OWNERS: owner_uids},
    writes=("patch",),
    pods=Pods(near=(Near(BUDGETS),)),
    concerns=_in_its_namespace,
)
WORKLOADS = {
    resource: Watch(resource, Workload, indexes={OWNERS: owner_uids}, concerns=_in_its_namespace)
    for resource in MIRRORED
}
CONFIGURATIONS = Watch(CONFIG_MAP, ConfigMap, private="namespace")
"""ConfigMaps of Flotilla's own namespace, one of which names more kinds of workloads."""

_SCALES = Resource("*", "v1", "*", "")
"""The scale of any kind of workload, which holds its number of pods. Without a scale only existence is checked."""
_BUILT_IN_DAEMON_SET = Resource("apps", "v1", "daemonsets", "DaemonSet")


class Gatherer:
    """Builds the snapshot of one budget from the mirror's tables and the apiserver's answers."""

    def __init__(self, context: ControllerContext, options: None) -> None:
        self._context = context
        self._budgets = context.table(BUDGETS)
        self._pods = context.table(PODS)
        self._workloads = {resource: context.table(watch) for resource, watch in WORKLOADS.items()}
        self._configurations = context.table(CONFIGURATIONS)
        self._lookups = Lookups(context, self._whitelist)
        self.triggers = Triggers(context, self._budgets, self._workloads)

    def gather(self, key: Key, memory: Memory) -> BudgetSnapshot | None:
        """Return the budget and its surroundings; None when it does not exist or is being deleted."""
        budget = self._budgets.get(*key)
        if budget is None or budget.metadata.deletion_timestamp is not None:
            self._lookups.forget(key)
            return None
        session = self._lookups.begin(key)
        snapshot = self._with_pods(budget, session)
        next_read = self._lookups.end(key, session)
        return msgspec.structs.replace(snapshot, next_read=next_read, notes=memory.notes)

    def _with_pods(self, budget: PodUnavailableBudget, session: Session) -> BudgetSnapshot:
        snapshot = BudgetSnapshot(budget=budget, gates=self._context.gates)
        try:
            members = ProtectedPods(budget, self._pods, self._workloads, session).find()
        except Pending as asked:
            return msgspec.structs.replace(snapshot, pending=str(asked))
        except (Unresolvable, ValueError) as fault:
            return msgspec.structs.replace(snapshot, fault=str(fault))
        named = dict(self._named(budget))
        return msgspec.structs.replace(
            snapshot,
            pods=members.pods,
            terminating=members.terminating,
            workloads=members.workloads,
            expected=members.expected,
            named=named,
            just_read=frozenset(self._just_read(budget, named, session)),
            missing_budgets=frozenset(self._missing(budget, members.pods, session)),
        )

    def _named(self, budget: PodUnavailableBudget) -> Iterator[tuple[str, Pod]]:
        """Yield the pods that the status names in its entries."""
        for name in {*budget.status.disruptions, *budget.status.unavailable_pods}:
            pod = self._pods.get(budget.metadata.namespace, name)
            if pod is not None:
                yield name, pod

    def _just_read(self, budget: PodUnavailableBudget, named: Mapping[str, Pod], session: Session) -> list[str]:
        """Return the names of pods that were read from the apiserver because their entries were in doubt."""
        doubtful = in_doubt(budget.status, named, self._context.clock.now())
        return [name for name, at in doubtful if session.was_read(POD, name, rfc3339(at))]

    def _missing(self, budget: PodUnavailableBudget, pods: Iterable[Pod], session: Session) -> Iterator[str]:
        """Yield the budgets that the pods name and that, according to the apiserver, do not exist."""
        namespace = budget.metadata.namespace
        for name in {related_budget(pod.metadata) for pod in pods} - {"", budget.metadata.name}:
            is_known = self._budgets.get(namespace, name) is not None
            if not is_known and session.was_read(POD_UNAVAILABLE_BUDGET, name):
                yield name

    def _whitelist(self) -> list[GroupKind]:
        """Return the kinds that the ConfigMap names; none if it cannot be read."""
        configuration = self._configurations.get(self._context.settings.namespace, CONFIGURATION)
        return [(workload.group, workload.kind) for workload in configured(configuration, custom_workloads)]


CONTROLLER = ControllerSpec(
    name="podunavailablebudget-controller",
    primary=BUDGETS,
    watches=(*WORKLOADS.values(), PODS, CONFIGURATIONS),
    access=(
        AccessRule(_SCALES, ("get",), "scale"),
        *(AccessRule(one, ("get",)) for one in (_BUILT_IN_DAEMON_SET, DAEMON_SET, JOB, BROADCAST_JOB)),
    ),
    build=Gatherer,
    triggers=lambda gatherer: [
        Trigger(BUDGETS, gatherer.triggers.of_budget),
        Trigger(PODS, gatherer.triggers.of_pod),
        Trigger(CONFIGURATIONS, gatherer.triggers.of_configuration),
        *(Trigger(watch, partial(gatherer.triggers.of_workload, resource)) for resource, watch in WORKLOADS.items()),
    ],
    plan=plan,
)
