"""The input of planning a PodUnavailableBudget, and which pods serve, computed once per version of a pod."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET, PodUnavailableBudget
from flotilla_common.control.plan import ObjectRef
from flotilla_common.gates import Gates
from flotilla_common.workload.budget import is_consistent, is_ready

_MEMO = "serves a budget"


class Counted(msgspec.Struct, frozen=True):
    """A workload and its desired number of pods; -1 if unknown."""

    kind: str
    name: str
    replicas: int


class BudgetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One budget and its surroundings at one moment."""

    budget: PodUnavailableBudget
    gates: Gates = Gates()
    pods: Sequence[Pod] = ()  # pods that count: active, and selected or of the workload
    terminating: Sequence[Pod] = ()  # pods that would count if they were not terminating
    workloads: Sequence[Counted] = ()  # of these pods, or the target workload
    expected: int = 0  # the expected number of pods
    named: Mapping[str, Pod] = {}  # pods that the status names in its entries, in any state
    just_read: frozenset[str] = frozenset()  # names among the entries about which the apiserver was asked just now
    missing_budgets: frozenset[str] = frozenset()  # budgets that these pods name and that do not exist
    pending: str = ""  # the object about which the apiserver must be asked first
    fault: str = ""  # why the expected number is unknown
    next_read: datetime | None = None  # when to read objects that are not watched again
    notes: Mapping[str, str] = {}  # of the previous pass

    @property
    def subject(self) -> ObjectRef:
        """The budget as events and the bus name it."""
        return ObjectRef.of(POD_UNAVAILABLE_BUDGET, self.budget.metadata)


def serves(pod: Pod, gates: Gates) -> bool:
    """Report whether the pod is ready and runs what its spec says, which is all that counts besides budget entries."""
    known = pod.memo.get(_MEMO)
    if known is None:
        known = pod.memo[_MEMO] = is_ready(pod) and is_consistent(pod, gates)
    return bool(known)
