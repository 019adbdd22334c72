"""Annotates new pods with their PodUnavailableBudget: step 5 of the pod webhook (podunavailablebudget.md §5.1).

No failure in this step prevents the creation of a pod: the budget's controller annotates existing pods, too.
"""

import msgspec
import structlog

from flotilla_common.api.admission.review import Request
from flotilla_common.api.documents import Json, ensured, member, strings, without_nulls
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.podunavailablebudget.types import (
    LEGACY_RELATED_BUDGET,
    POD_UNAVAILABLE_BUDGET,
    RELATED_BUDGET,
    PodUnavailableBudget,
)
from flotilla_common.api.meta import LabelSelector, OwnerReference
from flotilla_common.api.podrules import PodRule
from flotilla_common.api.selectors import Selector
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api
from flotilla_webhook.budgets.check import Budgets
from flotilla_webhook.budgets.match_conditions import created_rule
from flotilla_webhook.cache import read_all
from flotilla_webhook.owners import Owners, controller_in
from flotilla_webhook.pods.admission import AdmissionStep

_log = structlog.get_logger()


ASKED_SECONDS = 2.0
"""Seconds for which the result is cached that the apiserver has no budget for the pods of a namespace."""


class BudgetAnnotation:
    """The step that annotates new pods."""

    def __init__(self, api: Api, clock: Clock, budgets: Budgets) -> None:
        self._api = api
        self._clock = clock
        self._budgets = budgets
        self._owners = Owners(api, clock)
        self._asked: dict[str, float] = {}  # namespaces, and until when the apiserver's answer is cached

    def step(self) -> AdmissionStep:
        """Return the step; idle without the gates."""
        return AdmissionStep("PodUnavailableBudget", self.rules, self.change, lambda: self._budgets.known)

    async def rules(self) -> list[PodRule]:
        """Return the rules of new pods that some budget selects."""
        if not self._budgets.on:
            return []
        return [rule for budget in self._budgets.cache.values() for rule in _rules(budget, budget.metadata.namespace)]

    async def rules_of(self, document: Json, namespace: str) -> list[PodRule]:
        """Return the rules that a budget about to be stored requires. Raises ValueError if it cannot be read."""
        if not self._budgets.on:
            return []
        return _rules(msgspec.convert(without_nulls(document), PodUnavailableBudget), namespace)

    async def change(self, pod: Json, request: Request) -> None:
        """Set both annotations on a pod that a budget selects."""
        if not self._budgets.on:
            return
        name = await self._budget_of(pod, request.namespace)
        if not name and await self._has_more(request.namespace):
            name = await self._budget_of(pod, request.namespace)
        if name:
            annotations = ensured(ensured(pod, "metadata"), "annotations")
            annotations[RELATED_BUDGET] = annotations[LEGACY_RELATED_BUDGET] = name

    async def _has_more(self, namespace: str) -> bool:
        """Read the budgets of the namespace from the apiserver, if not done recently; return whether it did."""
        # The watch of this replica may not show yet what another replica has admitted.
        now = self._clock.monotonic()
        if self._asked.get(namespace, 0.0) > now:
            return False
        self._asked = {of: until for of, until in self._asked.items() if until > now}
        self._asked[namespace] = now + ASKED_SECONDS
        try:
            for item in await read_all(self._api, POD_UNAVAILABLE_BUDGET, namespace):
                self._budgets.cache.take(bytes(item))
        except (ApiError, Unreachable) as failure:
            _log.warning("cannot read the budgets of a namespace", namespace=namespace, why=str(failure))
            return False
        return True

    async def _budget_of(self, pod: Json, namespace: str) -> str:
        """Return the name of the first budget for the pod, or "". Budgets that cannot be checked are skipped."""
        owner, labels = controller_in(pod), strings(member(pod, "metadata").get("labels"))
        for budget in self._budgets.cache.values():
            try:
                if budget.metadata.namespace == namespace and await self._is_for(budget, owner, labels):
                    return budget.metadata.name
            except (ApiError, Unreachable, ValueError) as failure:
                _log.warning("cannot check if a budget selects a pod", budget=budget.metadata.name, why=str(failure))
        return ""

    async def _is_for(self, budget: PodUnavailableBudget, owner: OwnerReference | None, labels: dict[str, str]) -> bool:
        """Report whether the budget selects a pod of this controller with these labels.

        Raises ApiError, Unreachable, ValueError.
        """
        spec = budget.spec
        if spec.target_ref is not None:
            namespace = budget.metadata.namespace
            return owner is not None and await self._owners.lead_to(spec.target_ref, owner, namespace, ())
        selector = spec.selector
        return selector not in (None, LabelSelector()) and Selector.compile(selector).matches(labels)


def _rules(budget: PodUnavailableBudget, namespace: str) -> list[PodRule]:
    rule = created_rule(namespace, budget.spec)
    return [] if rule is None else [rule]
