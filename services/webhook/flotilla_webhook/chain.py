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
from flotilla_webhook.arming import Arming, RulesOf
from flotilla_webhook.budgetholders import BudgetHolders
from flotilla_webhook.budgetrecords import BudgetRecords
from flotilla_webhook.budgets import Budgets
from flotilla_webhook.cache import Cache
from flotilla_webhook.launch import launch_step
from flotilla_webhook.persistent import PersistentStates
from flotilla_webhook.podchecks import PodChecks
from flotilla_webhook.pods import PodAdmission, Step
from flotilla_webhook.relating import Relating
from flotilla_webhook.serverless import ServerlessProbes
from flotilla_webhook.sidecars import Sidecars
from flotilla_webhook.spreading import Spreads
from flotilla_webhook.standing import Standing
from flotilla_webhook.wire import Handler


class Armed(msgspec.Struct, frozen=True):
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
    armed: Mapping[Resource, Armed]
    serve: Callable[[], Coroutine[Any, Any, None]]
    """Called when the webhook begins to serve."""
    aclose: Callable[[], Awaitable[None]]
    """Called when the webhook stops serving."""

    def armed_by(self, arming: Arming, checks: Arming, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
        """Wrap the handlers of those kinds, by path, to arm the webhook before they answer.

        `arming` brings rules of new pods into use, `checks` those of pods that go or are updated.
        """
        return {
            path: _armed(self.armed[kind.resource], arming, checks, handlers[path])
            for kind in catalogue.KINDS
            if kind.rules().admission.arms_pods
            for path in paths(kind, "validate")
        }


def _armed(armed: Armed, arming: Arming, checks: Arming, handler: Handler) -> Handler:
    found = arming.before(handler, armed.rules_of, armed.admitted)
    return found if armed.checks_of is None else checks.before(found, armed.checks_of, lambda _: None)


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
    relating = Relating(api, clock, budgets)

    async def close() -> None:
        await asyncio.gather(spreads.close(), budgets.close())

    steps = [
        readiness_step(gates),
        spreads.step(),
        sidecars.step(),
        launch_step(gates, entropy),
        relating.step(),
        states.step(),
        probes.step(),
    ]
    return Chain(
        PodAdmission(steps, Standing(clock)),
        PodChecks(api, [spreads.check(), budgets.check()], Standing(clock)),
        (states.namespaces, sidecars.cache, spreads.cache, budgets.cache, *probes.caches),
        {
            WORKLOAD_SPREAD: Armed(spreads.rules_of, spreads.admitted),
            PERSISTENT_POD_STATE: Armed(states.rules_of, states.admitted),
            POD_PROBE_MARKER: Armed(probes.rules_of, lambda _: None),
            POD_UNAVAILABLE_BUDGET: Armed(relating.rules_of, lambda _: None, budgets.rules_of),
            SIDECAR_SET: Armed(sidecars.rules_of, sidecars.admitted),
        },
        spreads.serve,
        close,
    )


def readiness_step(gates: Gates) -> Step:
    """Return step 1, the KruisePodReady readiness gate; idle without the feature gate that requires it on every pod.

    Our controllers write it into the pods that they create, so only that feature gate requires the step.
    """
    on = gates.on("KruisePodReadinessGate")

    async def rules() -> list[PodRule]:
        return [LACKS_READINESS_GATE] if on else []

    async def change(pod: Json, request: Request) -> None:
        if on:
            _add_gate(mapping(pod["spec"]))

    return Step("readiness gate", rules, change)


def _add_gate(spec: Json) -> None:
    if not any(gate.get("conditionType") == POD_READY for gate in mappings(spec.get("readinessGates"))):
        fill(spec, readinessGates=[])
        spec["readinessGates"].append({"conditionType": POD_READY})
