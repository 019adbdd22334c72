"""The check of PodUnavailableBudgets: a request that disrupts an available pod takes a unit of its budget.

Requests to delete, evict or update are refused without a unit (podunavailablebudget.md §8). Those that the pod alone
decides do not read the budget. All others are decided together with a write of its status: a unit counts once it is
written, and every outcome without such a write (a refusal, a budget that lets the pod pass, a dry run) is decided on a
copy that was read after the request came. So neither a watch that lags nor another replica changes the outcome.
"""

import asyncio
from collections.abc import Collection, Iterable
from functools import partial

import msgspec
import structlog

from flotilla_common.api.admission.review import Answer, error
from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, member, text, typed
from flotilla_common.api.errors import ApiError, Unreachable, found_or_none
from flotilla_common.api.kinds.podunavailablebudget.types import (
    DELETE_GATE,
    POD_UNAVAILABLE_BUDGET,
    UPDATE_GATE,
    PodUnavailableBudget,
)
from flotilla_common.api.meta import ObjectMeta, metadata_of
from flotilla_common.api.podrules import PodRule
from flotilla_common.api.resources import NAMESPACE
from flotilla_common.clock import Clock, Entropy
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api
from flotilla_common.workload.budget import Pass, Refusal, operation_of_update, related_budget, why_free
from flotilla_webhook.budgets.match_conditions import removal_rule, updated_rule
from flotilla_webhook.budgets.reports import BudgetHolders, BudgetRecords
from flotilla_webhook.budgets.units import UnitRequest, Units
from flotilla_webhook.budgets.units_ahead import BUDGET_STATUS
from flotilla_webhook.cache import Cache, decoder
from flotilla_webhook.pods.admission import EVICT, UPDATE, Check, CheckResult, PodChange
from flotilla_webhook.status_writer import Gone, StatusWriter

MAX_NAMED = 64
"""Limit of the budgets that are named in the rules: each of them makes the configuration longer."""

_MAX_BUDGETS = 1000
"""Limit of budgets whose units are cached, beyond those that exist."""

_TOO_MANY_REQUESTS = 429

_log = structlog.get_logger()


class _Need(msgspec.Struct, frozen=True):
    """A unit of the budget that a pod names, and the change that needs it."""

    unit: UnitRequest
    budget: str
    change: PodChange


class Budgets:
    """The check, and the budgets that require it."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        entropy: Entropy,
        gates: Gates,
        records: BudgetRecords,
        holders: BudgetHolders,
        *,
        eviction_code: int,
    ) -> None:
        """Prepare the check; `eviction_code` is the HTTP code of refused evictions."""
        self.cache = Cache(POD_UNAVAILABLE_BUDGET, decoder(PodUnavailableBudget), _needed)
        self._api = api
        self._clock = clock
        self._entropy = entropy
        self._gates = gates
        self._records = records
        self._holders = holders
        self._terminating = TerminatingNamespaces(api)
        self._eviction_code = eviction_code
        self._replica = entropy.token()  # the name of this process among the replicas
        self._units: dict[tuple[str, str], Units] = {}  # by namespace and name

    async def close(self) -> None:
        """Return the units that were taken ahead, so that requests need not wait until they expire."""
        await asyncio.gather(*(units.close() for units in self._units.values()))

    @property
    def on(self) -> bool:
        """Report whether any gate of the check is on."""
        return self._gates.on(DELETE_GATE) or self._gates.on(UPDATE_GATE)

    @property
    def known(self) -> bool:
        """Report whether all budgets of the cluster are known."""
        return self.cache.known or not self.on

    def check(self) -> Check:
        """Return the check."""
        return Check("PodUnavailableBudget", self.rules, self.decide, lambda: self.known)

    async def rules(self) -> list[PodRule]:
        """Return the rules of pods of the namespaces that have a budget."""
        keys = {budget.metadata.key for budget in self.cache.values()}
        return [rule for namespace in sorted({of for of, _ in keys}) for rule in self._rules(namespace, keys)]

    async def rules_of(self, document: Json, namespace: str) -> list[PodRule]:
        """Return the rules that a budget about to be stored requires."""
        keys = {budget.metadata.key for budget in self.cache.values()}
        return self._rules(namespace, {*keys, (namespace, text(member(document, "metadata").get("name")))})

    def _rules(self, namespace: str, budgets: Collection[tuple[str, str]]) -> list[PodRule]:
        """Return the rules of pods of a namespace; `budgets` are namespaces and names of all budgets."""
        names = [name for of, name in budgets if of == namespace] if len(budgets) <= MAX_NAMED else ()
        going = [removal_rule(namespace, names)] if self._gates.on(DELETE_GATE) else []
        return [*going, *([updated_rule(namespace, names)] if self._gates.on(UPDATE_GATE) else [])]

    async def decide(self, change: PodChange) -> CheckResult:
        """Report whether the change may be made, and take a unit of the budget where it needs one."""
        began = self._clock.monotonic()
        try:
            wanted = self._wanted(change)
            if wanted is None:
                return CheckResult()
            units = self._units_of(change.namespace, wanted.budget)
            outcome = await units.take(wanted.unit)
        except Gone:
            return CheckResult()
        except (ApiError, Unreachable) as failure:
            return CheckResult(self._denied(change, str(failure)))
        except ValueError as fault:  # and NotRead
            return CheckResult(error(400, str(fault)))
        if isinstance(outcome, Refusal):
            return await self._refused(wanted, outcome, began)
        if outcome is not None or change.dry_run:
            return CheckResult()
        self._records.taken(change, wanted.unit.pod.metadata, wanted.budget, self._clock.monotonic() - began)
        return CheckResult(take_back=partial(units.take_back, wanted.unit))

    def _wanted(self, change: PodChange) -> _Need | None:
        """Return the needed unit and its budget, or None if the pod alone shows that it needs none.

        Raises ValueError if the pod cannot be read.
        """
        if not self._gates.on(UPDATE_GATE if change.operation == UPDATE else DELETE_GATE):
            return None
        operation, after = change.operation, change.request.object
        if operation == UPDATE and after is not None:
            if not related_budget(_metadata(after)):
                return None
            operation = operation_of_update(change.pod, after)
        name = related_budget(_metadata(change.pod))
        if not name or not operation:
            return None
        pod = typed(change.pod, Pod)
        if why_free(pod, None, operation, self._gates) is not Pass.NO_BUDGET:
            return None
        return _Need(UnitRequest(pod, operation, change.dry_run), name, change)

    async def _refused(self, wanted: _Need, refusal: Refusal, began: float) -> CheckResult:
        change = wanted.change
        if await self._terminating.is_terminating(change.namespace):  # all of its pods may go
            return CheckResult()
        budget = self.cache.get(change.namespace, wanted.budget) if refusal.exhausted else None
        message = f"{refusal.message}{await self._holders.sentences(budget)}"
        answer = self._denied(
            change, f'podunavailablebudget.policy.kruise.io "{wanted.budget}" is forbidden: {message}'
        )
        self._records.refused(
            change, wanted.unit.pod.metadata, wanted.budget, answer.message, self._clock.monotonic() - began
        )
        return CheckResult(answer)

    def _denied(self, change: PodChange, message: str) -> Answer:
        """Return the refusal: eviction clients retry after 429."""
        if change.operation == EVICT and self._eviction_code == _TOO_MANY_REQUESTS:
            return Answer(allowed=False, code=_TOO_MANY_REQUESTS, message=message, reason="TooManyRequests")
        return Answer(allowed=False, code=403, message=message, reason="Forbidden")

    def _units_of(self, namespace: str, name: str) -> Units:
        """Return the units of a budget, which need not exist: pods may name any, and the first read shows it."""
        key = namespace, name
        if key not in self._units:
            if len(self._units) >= _MAX_BUDGETS:
                self._units = dict(self._kept())
            writer = StatusWriter(self._api, self._clock, self._entropy, BUDGET_STATUS, self.cache, namespace, name)
            self._units[key] = Units(writer, self._clock, self._entropy, self._gates, self._replica)
        return self._units[key]

    def _kept(self) -> Iterable[tuple[tuple[str, str], Units]]:
        return ((key, one) for key, one in self._units.items() if one.busy or self.cache.get(*key) is not None)


class TerminatingNamespaces:
    """Reads in progress of whether namespaces are being deleted. Concurrent requests share a read."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._reading: dict[str, asyncio.Task[bool]] = {}  # by namespace

    async def is_terminating(self, namespace: str) -> bool:
        """Report whether the namespace is being deleted or is gone; False if it cannot be read."""
        reading = self._reading.get(namespace)
        if reading is None:
            reading = self._reading[namespace] = asyncio.create_task(self._read(namespace))
            reading.add_done_callback(lambda _: self._reading.pop(namespace, None))
        return await asyncio.shield(reading)

    async def _read(self, name: str) -> bool:
        try:
            body = await found_or_none(self._api.get(NAMESPACE, "", name))
        except (ApiError, Unreachable) as failure:
            _log.warning("cannot read a namespace", name=name, why=str(failure))
            return False
        return body is None or metadata_of(body).deletion_timestamp is not None


class _Named(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()


def _metadata(pod: Json) -> ObjectMeta:
    """Return the metadata of a pod. Raises ValueError if they cannot be read."""
    return typed(pod, _Named).metadata


def _needed(budget: PodUnavailableBudget) -> tuple[str, ...]:
    """Return the fields of the budget that its rules depend on."""
    target, selector = budget.spec.target_ref, budget.spec.selector
    chosen = msgspec.json.encode(selector).decode()
    return *budget.metadata.key, *(target.identity if target is not None else ()), chosen
