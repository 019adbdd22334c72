"""Takes units of one PodUnavailableBudget ahead, so that requests need not wait for a write of the status (ADR 33).

While many requests come, a replica takes more units than it has requests for, but never more than a part of what is
left. A request gets one of them at once, and the next write names its pod. Units that are left when requests stop
coming, or when the budget gets short, are returned. The units of a replica that dies are free again when they expire.
"""

from collections import deque
from datetime import datetime
from typing import NamedTuple

import structlog

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.podunavailablebudget.types import (
    AHEAD,
    DISRUPTED_SECONDS,
    POD_UNAVAILABLE_BUDGET,
    BudgetStatus,
    PodUnavailableBudget,
)
from flotilla_common.clock import Clock, Entropy
from flotilla_common.workload.budget import changes_of, give, give_back, is_any_fresh, most_ahead, take_ahead
from flotilla_webhook.status_writer import Gone, StatusSchema, StatusWriter
from flotilla_webhook.taking_ahead import TakenAhead, TakingAhead

MANY = 2
"""Number of requests within a second from which on units are taken ahead."""

AHEAD_SECONDS = 1.0
"""Seconds for which the units of a replica should last at the current rate.

A replica takes more when it has used half of them, because a write may be slow or conflict.
"""

FRESH_SECONDS = 2.0
"""Age up to which a unit is given to a pod: the count behind it gets old."""

NAMED_SECONDS = 0.5
"""Delay of writing down the pods that got units. Until then a pod that is seen to go counts twice."""

ALIVE_SECONDS = FRESH_SECONDS + 2.0
"""Age up to which a live replica may return or name a unit: entries have whole seconds, and a write may be slow."""

RECOUNTED_SECONDS = 5.0
"""Longest time in which the controller counts units that were returned, or counted twice."""

TICK_SECONDS = 0.02
"""Interval between two checks for something to write."""

FAILED_SECONDS = 1.0
"""Pause after a failed write."""

_log = structlog.get_logger()


class BudgetDraft:
    """The status after the requests of one write."""

    def __init__(self, status: BudgetStatus) -> None:
        self.status = status


BudgetWriter = StatusWriter[PodUnavailableBudget, BudgetDraft]


def _changes(budget: PodUnavailableBudget, draft: BudgetDraft) -> Json:
    return changes_of(budget.status, draft.status)


BUDGET_STATUS: StatusSchema[PodUnavailableBudget, BudgetDraft] = StatusSchema(
    POD_UNAVAILABLE_BUDGET, PodUnavailableBudget, lambda budget: BudgetDraft(budget.status), _changes
)


class _Given(NamedTuple):
    """A unit that was given to a pod, until the status names the pod."""

    unit: TakenAhead
    pod: Pod
    operation: str
    at: datetime
    since: float


class _Written(NamedTuple):
    """The changes of one write, applied to this replica's records once it is stored."""

    taken: list[TakenAhead]
    given: int


class UnitsAhead(TakingAhead[PodUnavailableBudget, BudgetDraft]):
    """The units of a budget that this replica has taken ahead."""

    def __init__(self, writer: BudgetWriter, clock: Clock, entropy: Entropy, replica: str) -> None:
        super().__init__(writer, clock, entropy, f"{AHEAD}{replica}/", MANY)
        self._held: deque[TakenAhead] = deque()  # the oldest first
        self._given: deque[_Given] = deque()  # the oldest first
        self._is_ending = False
        self._seen = float("-inf")  # when the status last had units ahead, of any replica
        self._count_seen = _count(BudgetStatus())  # the controller's count at that time

    def count_request(self, about: str = "") -> None:
        self._observe(self._status())
        super().count_request(about)

    def give(self, pod: Pod, operation: str) -> bool:
        """Give a unit to the pod; return whether there was one."""
        # Only units in the newest status count: others may have expired.
        now, stored = self._clock.monotonic(), self._status().disrupted_pods
        while self._held:
            unit = self._held.popleft()
            if unit.until > now and unit.key in stored:
                self._given.append(_Given(unit, pod, operation, self._clock.now(), now))
                return True
        return False

    def has_given(self, pod: Pod) -> bool:
        """Report whether the pod has just got a unit, and its request is repeated."""
        return any(given.pod.metadata.uid == pod.metadata.uid for given in self._given)

    def take_back(self, pod: Pod) -> bool:
        """Take the unit back from a pod that stays as it is after all; return whether that was possible.

        It is not after a write has named the pod.
        """
        kept = [given for given in self._given if given.pod.metadata.uid != pod.metadata.uid]
        if self._is_writing or len(kept) == len(self._given):
            return False
        self._given = deque(kept)  # the next write returns the unit
        return True

    def is_awaited(self) -> bool:
        """Report whether units of any replica are in the status, or were at the controller's last count.

        Until it has counted without them, it is not certain that no budget is left.
        """
        status = self._status()
        self._observe(status)
        is_counted = _count(status) != self._count_seen
        since = self._clock.monotonic() - self._seen
        return since <= 0 or (since <= RECOUNTED_SECONDS and not is_counted)

    async def close(self) -> None:
        self._is_ending = True
        await super().close()

    def _observe(self, status: BudgetStatus) -> None:
        """Record whether any replica holds units by this status."""
        # Every status is checked: a request may see another one than the controller has counted.
        if is_any_fresh(status, ALIVE_SECONDS, self._clock.now()):
            self._seen, self._count_seen = self._clock.monotonic(), _count(status)

    async def _run(self) -> None:
        """Take units ahead while many requests come, write down their pods, and return the rest."""
        while self._rate.rates() or self._held or self._given or self._unclaimed():
            await self._sync()
            if self._has_failed and self._is_ending:
                return
            await self._clock.sleep(FAILED_SECONDS if self._has_failed else TICK_SECONDS)

    async def _sync(self) -> None:
        """Write what is due. After a failure nothing is held, as the content of the status is unknown."""
        self._observe(self._status())
        self._release()
        if self._is_writing or not self._is_due():
            return
        self._is_writing = True
        try:
            await self._writer.write(self._write, self._settle)
            self._has_failed = False
        except Gone:
            self._held.clear()
            self._given.clear()
        except (ApiError, Unreachable, ValueError) as failure:
            _log.info("cannot take budget ahead", why=str(failure))
            self._held.clear()
            self._has_failed = True
        finally:
            self._is_writing = False

    def _release(self) -> None:
        """Release the units that are too old, or more than is left for others, or all of them if no request comes.

        The next write returns them. Pods that could not be written down in time are dropped: they are gone, or the
        request that took their unit failed.
        """
        now, left = self._clock.monotonic(), self._status().unavailable_allowed
        while self._held and (self._rate.is_idle or self._held[0].until <= now or len(self._held) > left):
            self._held.popleft()
        while not self._is_writing and self._given and self._given[0].since <= now - DISRUPTED_SECONDS:
            self._given.popleft()

    def _is_due(self) -> bool:
        """Report whether a write is needed now."""
        is_late = bool(self._given) and self._given[0].since <= self._clock.monotonic() - NAMED_SECONDS
        wanted = self._wanted(self._status())
        return is_late or (wanted > 0 and 2 * len(self._held) <= wanted) or bool(self._unclaimed())

    def _wanted(self, status: BudgetStatus) -> int:
        """Return the number of units to hold."""
        rate = sum(self._rate.rates().values())
        return min(int(rate * AHEAD_SECONDS), most_ahead(status, len(self._held)))

    def _unclaimed(self) -> set[str]:
        """Return the units of this replica in the status that it neither holds nor has given to a pod."""
        return self._of_this_replica(self._status()) - self._known()

    def _of_this_replica(self, status: BudgetStatus) -> set[str]:
        return {key for key in status.disrupted_pods if key.startswith(self._own)}

    def _known(self) -> set[str]:
        return {unit.key for unit in (*self._held, *(given.unit for given in self._given))}

    def _status(self) -> BudgetStatus:
        budget = self._writer.known()
        return BudgetStatus() if budget is None else budget.status

    def _write(self, budget: PodUnavailableBudget, draft: BudgetDraft) -> _Written:
        """Update the status to this replica's records, and take what is lacking."""
        self._observe(budget.status)
        status, given = draft.status, list(self._given)
        for one in given:
            status = give(status, one.unit.key, one.pod, one.operation, one.at)
        status = give_back(status, self._of_this_replica(status) - self._known())
        until = self._clock.monotonic() + FRESH_SECONDS
        lacking = self._wanted(status) - len(self._held)
        taken = [TakenAhead(f"{self._own}{self._entropy.uuid()}", until) for _ in range(lacking)]
        draft.status = take_ahead(status, [unit.key for unit in taken], self._clock.now())
        return _Written(taken, len(given))

    def _settle(self, written: _Written) -> None:
        """Apply the stored write to this replica's records."""
        self._held.extend(written.taken)
        for _ in range(written.given):
            self._given.popleft()


def _count(status: BudgetStatus) -> tuple[int, int, int]:
    """Return the controller's counts."""
    return status.current_available, status.desired_available, status.total_replicas
