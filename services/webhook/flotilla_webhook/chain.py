"""Builds the chain of steps on new pods, in order (webhooks.md §7), and the kinds whose objects require it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

import msgspec

from flotilla_common.api.admission.review import Request
from flotilla_common.api.documents import Json, fill, mapping, mappings
from flotilla_common.api.keys import POD_READY
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD
from flotilla_common.api.podrules import LACKS_READINESS_GATE, PodRule
from flotilla_common.api.resources import Resource
from flotilla_common.api.webhooks import paths
from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock, Entropy
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api
from flotilla_common.settings import Settings
from flotilla_webhook.activation import Activation, RulesOf
from flotilla_webhook.active_rules import ActiveRules
from flotilla_webhook.budget_annotation import BudgetAnnotation
from flotilla_webhook.budget_holders import BudgetHolders
from flotilla_webhook.budget_records import BudgetRecords
from flotilla_webhook.budgets import Budgets
from flotilla_webhook.cache import Cache
from flotilla_webhook.launch import launch_step
from flotilla_webhook.persistent import PersistentStates
from flotilla_webhook.pod_checks import PodChecks
from flotilla_webhook.pods import AdmissionStep, PodAdmission
from flotilla_webhook.serverless import ServerlessProbes
from flotilla_webhook.sidecars import Sidecars
from flotilla_webhook.spreading import Spreads
from flotilla_webhook.wire import Handler


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

    def with_activation(
        self, activation: Activation, checks: Activation, handlers: Mapping[str, Handler]
    ) -> dict[str, Handler]:
        """Wrap the handlers of those kinds, by path, to arm the webhook before they answer.

        `activation` brings rules of new pods into use, `checks` those of pods that go or are updated.
        """
        return {
            path: _with_activation(self.rule_sources[kind.resource], activation, checks, handlers[path])
            for kind in catalogue.KINDS
            if kind.rules().admission.arms_pods
            for path in paths(kind, "validate")
        }


def _with_activation(source: RuleSource, activation: Activation, checks: Activation, handler: Handler) -> Handler:
    found = activation.before(handler, source.rules_of, source.admitted)
    return found if source.checks_of is None else checks.before(found, source.checks_of, lambda _: None)


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
        PodAdmission(steps, ActiveRules(clock)),
        PodChecks(api, [spreads.check(), budgets.check()], ActiveRules(clock)),
        (states.namespaces, sidecars.cache, spreads.cache, budgets.cache, *probes.caches),
        {
            WORKLOAD_SPREAD: RuleSource(spreads.rules_of, spreads.admitted),
            PERSISTENT_POD_STATE: RuleSource(states.rules_of, states.admitted),
            POD_PROBE_MARKER: RuleSource(probes.rules_of, lambda _: None),
            POD_UNAVAILABLE_BUDGET: RuleSource(annotation.rules_of, lambda _: None, budgets.rules_of),
            SIDECAR_SET: RuleSource(sidecars.rules_of, sidecars.admitted),
        },
        spreads.serve,
        close,
    )


def readiness_step(gates: Gates) -> AdmissionStep:
    """Return step 1, the KruisePodReady readiness gate; idle without the feature gate that requires it on every pod.

    Our controllers write it into the pods that they create, so only that feature gate requires the step.
    """
    on = gates.on("KruisePodReadinessGate")

    async def rules() -> list[PodRule]:
        return [LACKS_READINESS_GATE] if on else []

    async def change(pod: Json, request: Request) -> None:
        if on:
            _add_gate(mapping(pod["spec"]))

    return AdmissionStep("readiness gate", rules, change)


def _add_gate(spec: Json) -> None:
    if not any(gate.get("conditionType") == POD_READY for gate in mappings(spec.get("readinessGates"))):
        fill(spec, readinessGates=[])
        spec["readinessGates"].append({"conditionType": POD_READY})
