"""Lists the steps and checks of pods in order (webhooks.md §7, §8), and the kinds whose objects require them."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD
from flotilla_common.api.resources import MUTATING, VALIDATING, Resource
from flotilla_common.api.webhooks import paths
from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock, Entropy
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api
from flotilla_common.settings import Settings
from flotilla_webhook.budgets.annotation import BudgetAnnotation
from flotilla_webhook.budgets.check import Budgets
from flotilla_webhook.budgets.reports import BudgetHolders, BudgetRecords
from flotilla_webhook.cache import Cache
from flotilla_webhook.pods.activation import Activation, ActiveRules, RulesOf
from flotilla_webhook.pods.admission import PodAdmission, PodChecks
from flotilla_webhook.pods.persistent import PersistentStates
from flotilla_webhook.pods.probes import ServerlessProbes
from flotilla_webhook.pods.sidecars import Sidecars
from flotilla_webhook.pods.startup import launch_step, readiness_step
from flotilla_webhook.server.registration import PodEntries, Registration
from flotilla_webhook.server.reviews import Handler
from flotilla_webhook.spreading.step import Spreads


class RuleSource(msgspec.Struct, frozen=True):
    """A kind whose objects require the pod webhook."""

    rules_of: RulesOf
    admitted: Callable[[Json], None]
    """Called with an object that is about to be stored."""
    checks_of: RulesOf | None = None
    """Returns its rules for pods that go or are updated, if they must be in use before it is stored."""


class Chain(msgspec.Struct, frozen=True):
    """The pod webhook with everything it depends on."""

    pods: PodAdmission
    checks: PodChecks
    caches: tuple[Cache[Any], ...]
    rule_sources: Mapping[Resource, RuleSource]
    serve: Callable[[], Coroutine[Any, Any, None]]
    """Called when the webhook begins to serve."""
    aclose: Callable[[], Awaitable[None]]
    """Called when the webhook stops serving."""

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers in the path of pods, by path."""
        return self.pods.handlers() | self.checks.handlers()

    def entries(self) -> dict[Resource, PodEntries]:
        """Return the functions that build the entries in the path of pods, by configuration."""
        return {MUTATING: self.pods.entries, VALIDATING: self.checks.entries}

    def with_activation(
        self, api: Api, clock: Clock, registration: Registration, handlers: Mapping[str, Handler]
    ) -> dict[str, Handler]:
        """Wrap the handlers of those kinds, by path, to bring the rules of an object into use before they answer."""
        pods, checks = self.pods.active_rules, self.checks.active_rules
        creations = Activation(api=api, clock=clock, active_rules=pods, register=registration.sync_pods)
        changes = Activation(api=api, clock=clock, active_rules=checks, register=registration.sync_checks)
        return {
            path: _with_activation(self.rule_sources[kind.resource], creations, changes, handlers[path])
            for kind in catalogue.KINDS
            if kind.rules().admission.arms_pods
            for path in paths(kind, "validate")
        }

    def tasks(self, api: Api, clock: Clock, on_change: Callable[[], None]) -> list[Coroutine[Any, Any, None]]:
        """Return the tasks of watches and of expiring rules; they call `on_change` when other rules are required."""
        for cache in self.caches:
            cache.listen(on_change)
        expiring = [rules.expire(on_change) for rules in (self.pods.active_rules, self.checks.active_rules)]
        return [*expiring, *(cache.follow(api, clock) for cache in self.caches)]


def _with_activation(source: RuleSource, creations: Activation, changes: Activation, handler: Handler) -> Handler:
    found = creations.before(handler, source.rules_of, source.admitted)
    return found if source.checks_of is None else changes.before(found, source.checks_of, lambda _: None)


def chain_of(
    api: Api, bus: Bus, clock: Clock, entropy: Entropy, settings: Settings, gates: Gates, records: BudgetRecords
) -> Chain:
    """Return the pod webhook."""
    states = PersistentStates(api, clock, settings.namespace)
    sidecars = Sidecars(api, clock, entropy, gates, settings.namespace)
    spreads = Spreads(api, bus, clock, entropy, on=gates.on("WorkloadSpread"), settings=settings)
    holders = BudgetHolders(bus, clock)
    budgets = Budgets(api, clock, entropy, gates, records, holders, eviction_code=settings.pub_eviction_denied_code)
    probes = ServerlessProbes(api, gates)
    annotation = BudgetAnnotation(api, clock, budgets)

    async def close() -> None:
        await asyncio.gather(spreads.close(), budgets.close())

    steps = [
        readiness_step(gates),
        spreads.step(),
        sidecars.step(),
        launch_step(gates, entropy),
        annotation.step(),
        states.step(),
        probes.step(),
    ]
    return Chain(
        pods=PodAdmission(steps, ActiveRules(clock)),
        checks=PodChecks(api, [spreads.check(), budgets.check()], ActiveRules(clock)),
        caches=(states.namespaces, sidecars.cache, spreads.cache, budgets.cache, *probes.caches),
        rule_sources={
            WORKLOAD_SPREAD: RuleSource(spreads.selection.rules_of, spreads.selection.admitted),
            PERSISTENT_POD_STATE: RuleSource(states.rules_of, states.admitted),
            POD_PROBE_MARKER: RuleSource(probes.rules_of, lambda _: None),
            POD_UNAVAILABLE_BUDGET: RuleSource(annotation.rules_of, lambda _: None, budgets.rules_of),
            SIDECAR_SET: RuleSource(sidecars.rules_of, sidecars.admitted),
        },
        serve=spreads.serve,
        aclose=close,
    )
