"""Takes budget for the pods that a pass of a workload's controller disrupts (podunavailablebudget.md §9).

An update in place makes a pod NotReady before it changes it, and a pod that is not ready needs no budget. So the budget
is taken first: one write of the budget's status for all pods of the pass, conditional on its version. A pass whose
write is refused updates no pod, and is planned again from the newest status.

Deletions take their budget in the webhook. A pass only plans as many as the budget allows, because each further one
would be a refused write.
"""

from collections.abc import Mapping
from datetime import datetime

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.podunavailablebudget.types import (
    DELETE,
    DELETE_GATE,
    POD_UNAVAILABLE_BUDGET,
    RESIZE,
    UPDATE,
    UPDATE_GATE,
    PodUnavailableBudget,
)
from flotilla_common.api.resources import POD
from flotilla_common.control.keystate import Key
from flotilla_common.control.plan import UPDATES_IN_PLACE, Chain, Delete, Intent, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import named, pods_word
from flotilla_common.control.writes import patch_of
from flotilla_common.gates import Gates
from flotilla_common.workload.budget.decision import related_budget, why_free
from flotilla_common.workload.budget.taking import Refusal, changes_of, held_by, take

_GATES = {DELETE: DELETE_GATE, UPDATE: UPDATE_GATE, RESIZE: UPDATE_GATE}


class Disruptions:
    """The pods that one pass disrupts, and the pods that wait for budget."""

    def __init__(self, budgets: Mapping[Key, PodUnavailableBudget], gates: Gates, now: datetime) -> None:
        """Begin a pass in which no pod is disrupted yet; `budgets` are named by the pods."""
        self._budgets = budgets
        self._gates = gates
        self._now = now
        self._statuses = {key: budget.status for key, budget in budgets.items()}  # as changed by this pass
        self._taken: dict[Key, list[Pod]] = {}
        self._deleted: dict[Key, int] = {}
        self._admitted: set[str] = set()  # uids of pods that may be disrupted
        self._waiting: dict[Key, dict[str, Pod]] = {}  # by budget and uid
        self._faults: dict[Key, str] = {}

    def try_take_for(self, pod: Pod, chain: Chain) -> bool:
        """Take the budget that the writes on the pod need; report whether they may be made now."""
        operation = _operation_of(chain)
        return not operation or self.try_take(pod, operation)

    def try_take(self, pod: Pod, operation: str) -> bool:
        """Take budget if a disruption of the pod needs any; report whether it may be disrupted now.

        `operation` is DELETE, UPDATE or RESIZE. Steps of a pass may ask about the same pod again: it takes budget once.
        """
        key = pod.metadata.namespace, related_budget(pod.metadata)
        budget = self._budgets.get(key)
        uid = pod.metadata.uid
        if budget is None or uid in self._admitted or not self._gates.on(_GATES[operation]):
            return True
        try:
            free = why_free(pod, budget, operation, self._gates) is not None
        except ValueError as fault:
            self._faults[key] = str(fault)
            free = False
        if free or (key not in self._faults and self._take(key, pod, operation)):
            self._admitted.add(uid)
            return True
        self._waiting.setdefault(key, {})[uid] = pod
        return False

    def stage(self, builder: PlanBuilder) -> None:
        """Put the writes that take budget before all others of the plan, and add a reason for the waiting pods."""
        chains = [
            (
                patch_of(
                    POD_UNAVAILABLE_BUDGET,
                    self._budgets[key].metadata,
                    Intent.BUDGET,
                    f"budget for the update of {pods_word(len(pods))}",
                    body={"status": changes_of(self._budgets[key].status, self._statuses[key])},
                    subresource="status",
                    on_version=True,
                    pods=tuple(pod.metadata.name for pod in pods),
                ),
            )
            for key, pods in self._taken.items()
        ]
        builder.stage(chains, at=0)
        for key, pods in self._waiting.items():
            self._explain(key, list(pods.values()), builder)

    def _take(self, key: Key, pod: Pod, operation: str) -> bool:
        status, deleted = self._statuses[key], self._deleted.get(key, 0)
        if operation == DELETE:
            self._deleted[key] = deleted + 1
            return deleted < status.unavailable_allowed
        # A resize is recorded like an update: nothing is deleted that the controller could miss.
        taken = take(status, pod, UPDATE, self._now)
        if isinstance(taken, Refusal) or deleted >= status.unavailable_allowed:
            return False
        self._statuses[key] = taken
        self._taken.setdefault(key, []).append(pod)
        return True

    def _explain(self, key: Key, pods: list[Pod], builder: PlanBuilder) -> None:
        who = f"{named(pods)} for PodUnavailableBudget {key[1]}"
        if fault := self._faults.get(key):
            builder.reason(State.STUCK, "InvalidBudget", f"{who}: {fault}", pods)
        else:
            builder.reason(State.WAITING, "WaitingForBudget", f"{who}: {held_by(self._statuses[key])}", pods)


def _operation_of(chain: Chain) -> str:
    """Return what the writes do to the pod: DELETE, UPDATE, RESIZE, or an empty text if they disrupt nothing."""
    if any(isinstance(action, Delete) and action.resource == POD for action in chain):
        return DELETE
    intents = {action.intent for action in chain}
    if Intent.RESIZE in intents:
        return RESIZE
    return UPDATE if intents & (UPDATES_IN_PLACE | {Intent.RECREATE}) else ""
