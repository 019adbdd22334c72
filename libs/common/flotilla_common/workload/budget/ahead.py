"""Takes units of budget ahead of requests (ADR 33).

Under many requests, a replica of the webhook takes more units than it has requests for. They are in `disruptedPods`
under keys that no pod can have, until a later write replaces them by the pods that got them, or returns them. Each
counts as a taken unit.
"""

from collections.abc import Collection, Iterable
from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.podunavailablebudget.types import BudgetStatus, is_ahead
from flotilla_common.api.meta import later
from flotilla_common.workload.budget.taking import is_recorded, with_entry, without

LAST_UNITS, SHARE = 4, 4
"""The last units of a budget go to waiting requests; of the others a replica holds at most this part.

There are several replicas, and units that one of them holds are missing for all others.
"""


def is_any_fresh(status: BudgetStatus, seconds: float, now: datetime) -> bool:
    """Return whether a unit was taken ahead less than this many seconds ago."""
    return any(is_ahead(key) and now < later(at, seconds) for key, at in status.disrupted_pods.items())


def most_ahead(status: BudgetStatus, held: int) -> int:
    """Return the number of units that a replica may hold, which holds `held` now."""
    return max(0, status.unavailable_allowed + held - LAST_UNITS) // SHARE


def take_ahead(status: BudgetStatus, keys: Collection[str], now: datetime) -> BudgetStatus:
    """Return the status with a unit taken for each of the keys."""
    taken = dict.fromkeys(keys, now.replace(microsecond=0))
    return msgspec.structs.replace(
        status,
        unavailable_allowed=status.unavailable_allowed - len(taken),
        disrupted_pods=status.disrupted_pods | taken,
    )


def give(status: BudgetStatus, key: str, pod: Pod, operation: str, at: datetime) -> BudgetStatus:
    """Return the status with the pod in place of the unit that it got.

    If the unit is gone, the pod takes another one: the unit may have been counted as free since. If the pod is there
    already, by a request to another replica, the unit is returned.
    """
    has_unit = key in status.disrupted_pods
    if is_recorded(status, pod):
        return give_back(status, {key})
    if not has_unit:
        status = msgspec.structs.replace(status, unavailable_allowed=max(0, status.unavailable_allowed - 1))
    return with_entry(_without(status, {key}), pod, operation, at)


def give_back(status: BudgetStatus, keys: Iterable[str]) -> BudgetStatus:
    """Return the status without these units, which are available again if some budget is left.

    If none is left, more may be missing than the status can show, and only the controller's next count makes units
    available.
    """
    gone = status.disrupted_pods.keys() & set(keys)
    left = status.unavailable_allowed
    allowed = left + len(gone) if left > 0 else left
    return msgspec.structs.replace(_without(status, gone), unavailable_allowed=allowed)


def _without(status: BudgetStatus, keys: Collection[str]) -> BudgetStatus:
    return msgspec.structs.replace(status, disrupted_pods=without(status.disrupted_pods, keys))
