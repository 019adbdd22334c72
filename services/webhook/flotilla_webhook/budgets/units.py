"""Units of one PodUnavailableBudget, as this process takes and returns them (podunavailablebudget.md §8.6)."""

from contextlib import suppress

import msgspec
from prometheus_client import Counter

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.podunavailablebudget.types import PodUnavailableBudget
from flotilla_common.clock import Clock, Entropy
from flotilla_common.gates import Gates
from flotilla_common.workload.budget import Pass, Refusal, has_just_taken, take, why_free, without_entry
from flotilla_webhook.budgets.units_ahead import TICK_SECONDS, BudgetDraft, BudgetWriter, UnitsAhead
from flotilla_webhook.status_writer import Gone

AWAITED_SECONDS = 1.0
"""Limit of waiting for units that replicas have taken ahead; after it the request is refused."""

_UNITS = Counter("flotilla_webhook_budget_units_total", "Units of PodUnavailableBudgets that were taken.", ["source"])
_AHEAD, _STATUS = (_UNITS.labels(source) for source in ("ahead", "status"))


class UnitRequest(msgspec.Struct, frozen=True):
    """A unit that a request needs."""

    pod: Pod
    operation: str
    dry_run: bool = False


class Units:
    """Takes and returns units, each request by itself."""

    def __init__(self, writer: BudgetWriter, clock: Clock, entropy: Entropy, gates: Gates, replica: str) -> None:
        self._writer = writer
        self._ahead = UnitsAhead(writer, clock, entropy, replica)
        self._clock = clock
        self._gates = gates

    @property
    def busy(self) -> bool:
        """Report whether there is or may be something to write."""
        return self._writer.busy or self._ahead.busy

    async def close(self) -> None:
        """Return what was taken ahead."""
        await self._ahead.close()

    async def take(self, request: UnitRequest) -> Pass | Refusal | None:
        """Return why the pod needs no budget, why there is none, or None once a unit is taken. A dry run takes none.

        Raises Gone, ApiError, Unreachable, and ValueError for a budget that cannot be read.
        """
        if self._is_repeated(request):
            return Pass.JUST_RECORDED
        if self._is_given(request):
            return None
        end = self._clock.monotonic() + AWAITED_SECONDS
        while True:
            outcome = await self._writer.write(
                lambda budget, draft: self._decide(request, budget, draft),
                is_sure=lambda outcome: _is_sure(outcome, request),
            )
            if not isinstance(outcome, Refusal) or not self._may_be_left(outcome) or self._clock.monotonic() > end:
                if outcome is None and not request.dry_run:
                    _STATUS.inc()
                return outcome
            await self._clock.sleep(TICK_SECONDS)

    async def take_back(self, request: UnitRequest) -> None:
        """Take the unit back from a pod that stays as it is after all. Raises ApiError, Unreachable, ValueError."""

        def remove(budget: PodUnavailableBudget, draft: BudgetDraft) -> None:
            del budget
            draft.status = without_entry(draft.status, request.pod, request.operation)

        if not self._ahead.take_back(request.pod):
            with suppress(Gone):
                await self._writer.write(remove)

    def _is_repeated(self, request: UnitRequest) -> bool:
        """Report whether the pod has just got its unit. The apiserver often sends a request twice."""
        budget = self._writer.known()
        is_stored = budget is not None and has_just_taken(budget.status, request.pod, self._clock.now())
        return is_stored or self._ahead.has_given(request.pod)

    def _is_given(self, request: UnitRequest) -> bool:
        """Report whether the pod gets a unit that was taken ahead."""
        budget = self._writer.known()
        is_free = budget is None or why_free(request.pod, budget, request.operation, self._gates) is not None
        if is_free or request.dry_run:
            return False
        self._ahead.count_request()
        if self._ahead.give(request.pod, request.operation):
            _AHEAD.inc()
            return True
        self._ahead.hurry()
        return False

    def _may_be_left(self, refusal: Refusal) -> bool:
        """Report whether replicas may return units of an exhausted budget."""
        return refusal.exhausted and self._ahead.is_awaited()

    def _decide(self, request: UnitRequest, budget: PodUnavailableBudget, draft: BudgetDraft) -> Pass | Refusal | None:
        """Decide; the result is that of `take`. Raises ValueError."""
        now = msgspec.structs.replace(budget, status=draft.status)
        free = why_free(request.pod, now, request.operation, self._gates)
        if free is Pass.RECORDED and has_just_taken(draft.status, request.pod, self._clock.now()):
            return Pass.JUST_RECORDED
        if free is not None:
            return free
        taken = take(draft.status, request.pod, request.operation, self._clock.now())
        if isinstance(taken, Refusal):
            return taken
        if not request.dry_run:
            draft.status = taken
        return None


def _is_sure(outcome: Pass | Refusal | None, request: UnitRequest) -> bool:
    """Report whether the outcome holds although its copy of the budget may be old.

    A unit counts once it is written, and one that was taken a moment ago is still there.
    """
    return outcome is Pass.JUST_RECORDED or (outcome is None and not request.dry_run)
