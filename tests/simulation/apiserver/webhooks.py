"""Admission by our own webhook: its real handlers, called as the apiserver calls them, in this process.

Which requests it is asked about is read from the webhook configurations that our webhook would register. Objects cross
as AdmissionReview bytes and come back as JSON patches, so that encoding, decoding and patches are the real ones too.
Pods are asked about while something needs it: no SidecarSet, PersistentPodState, WorkloadSpread or
PodUnavailableBudget is stored before the entry that calls for it is in use. What conditions in CEL tell apart,
`_is_needed` and `_is_checked` do here.

There may be several replicas of the webhook, which take turns: each has a memory of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from itertools import cycle

import msgspec

from flotilla_common.api.admission.review import Answer
from flotilla_common.api.core import Pod
from flotilla_common.api.documents import mapping, mappings, member, typed
from flotilla_common.api.keys import CONTAINER_PRIORITY_ENV, LAUNCH_PRIORITY, LAUNCHED_IN_ORDER
from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET, UPDATE_GATE
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.kinds.workloadspread.types import MATCHED, WORKLOAD_SPREAD
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.podrules import PodRule, check_entries, pod_entries
from flotilla_common.api.resources import NAMESPACE, POD, Resource
from flotilla_common.api.selectors import Selector
from flotilla_common.api.webhooks import mutating_entries, path_of, validating_entries
from flotilla_common.bus.interface import Bus
from flotilla_common.control.events import Recorder
from flotilla_common.control.journal import Journal
from flotilla_common.control.plan import Json
from flotilla_common.gates import Gates
from flotilla_common.settings import Settings
from flotilla_common.workload.budget import is_exempt, is_ready, operation_of_update, related_budget
from flotilla_webhook.budgets.reports import COMPONENT, BudgetRecords
from flotilla_webhook.chain import chain_of
from flotilla_webhook.kinds import handlers_of
from flotilla_webhook.metrics import process_metrics
from flotilla_webhook.server import reviews
from tests.simulation.apiserver import errors, json_patch
from tests.simulation.apiserver.admission import Attributes
from tests.simulation.apiserver.client import SimulatedApi
from tests.simulation.apiserver.kinds.base import Kind
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.wire import Wire
from tests.simulation.loop import SeededEntropy, SimulatedLoop

EVICTION = "eviction"

ONE: Mapping[str, Wire | None] = {"webhook-0": None}
"""One replica, with a wire of its own."""


class Replica:
    """One process of the webhook."""

    def __init__(self, server: ApiServer, bus: Bus, settings: Settings, name: str, wire: Wire | None) -> None:
        self._api, self._clock = SimulatedApi(server, name, wire), server.clock
        gates = settings.gates()
        self._events = Recorder(self._api, self._clock, SeededEntropy(name), COMPONENT)
        journal = Journal(bus, self._clock, "webhook", name)
        records = BudgetRecords(journal, self._events, process_metrics(), lambda _: None)
        self._chain = chain_of(self._api, bus, self._clock, SeededEntropy(name), settings, gates, records)
        handlers = handlers_of(self._api, self._clock, settings, gates, process_metrics())
        self.handlers = handlers | self._chain.handlers()

    def follow(self, loop: SimulatedLoop) -> None:
        """Watch the objects that the process caches, and answer other replicas, from now on."""
        loop.create_task(self._chain.serve(), context=Context())
        loop.create_task(self._events.run(), context=Context())
        for cache in self._chain.caches:
            loop.create_task(cache.follow(self._api, self._clock), context=Context())

    def admitted(self, resource: Resource, document: Json) -> None:
        """Tell it of an object that it has let through, as `Activation` does."""
        if resource in self._chain.rule_sources:
            self._chain.rule_sources[resource].admitted(document)


class _Entry:
    """One webhook of a configuration."""

    def __init__(self, document: Json) -> None:
        self.name: str = document["name"]
        self.path = path_of(document)
        self.ignorable = document["failurePolicy"] == "Ignore"
        self.namespaces = _compiled(document["namespaceSelector"])
        self.objects = _compiled(document["objectSelector"])
        rules = document["rules"]
        self._asked = {
            (group, resource, operation)
            for rule in rules
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for operation in rule["operations"]
        }

    def asks(self, kind: Kind, operation: str, subresource: str = "") -> bool:
        """Report whether the rules name such a write."""
        path = "/".join(filter(None, (kind.resource.plural, subresource)))
        return (kind.resource.group, path, operation) in self._asked


class Webhooks:
    """The `Admission` that our webhook makes. `reachable` = False: it is down."""

    def __init__(self, server: ApiServer, replicas: Sequence[Replica], gates: Gates) -> None:
        self._server = server
        self._turns = cycle(replicas)
        self.replicas = replicas
        self._mutating = [_Entry(entry) for entry in mutating_entries()]
        self._pods = [_Entry(entry) for entry in pod_entries([PodRule("any step", "true", probed=False)])]
        self._validating = [_Entry(entry) for entry in validating_entries(gates)]
        self._updates = gates.on(UPDATE_GATE)
        rules = [PodRule("any check", "true", updates=updates) for updates in (False, self._updates)]
        self._checking = [_Entry(entry) for entry in check_entries(rules)]
        self._concerned: dict[tuple[str, str], bool] = {}  # by resource and operation: asked before every write
        self._all_pods = gates.on("KruisePodReadinessGate")
        self.reachable = True

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        if subresource:
            return (kind.resource, operation, subresource) == (POD, "CREATE", EVICTION)
        key = (kind.resource.id, operation)
        if key not in self._concerned:
            self._concerned[key] = any(entry.asks(kind, operation) for entry in (*self._mutating, *self._validating))
        checked = ("CREATE", "DELETE", *(("UPDATE",) if self._updates else ()))
        return self._concerned[key] or (kind.resource == POD and operation in checked)

    async def mutate(self, attributes: Attributes) -> Json:
        document = attributes.document or {}
        for entry in [*(self._pods if self._is_needed(attributes) else ()), *self._mutating]:
            current = msgspec.structs.replace(attributes, document=document)
            answer = await self._ask(entry, current)
            if answer is not None and answer.patch:
                document = json_patch.apply_operations(document, [operation.document() for operation in answer.patch])
        return document

    async def validate(self, attributes: Attributes) -> None:
        for entry in [*(self._checking if self._is_checked(attributes) else ()), *self._validating]:
            await self._ask(entry, attributes)

    def _is_needed(self, attributes: Attributes) -> bool:
        """Report whether a step of the pod webhook has to see such a pod."""
        if (attributes.kind.resource, attributes.operation) != (POD, "CREATE"):
            return False
        if self._all_pods or self._server.store.table(SIDECAR_SET).objects:
            return True
        kinds = (PERSISTENT_POD_STATE, WORKLOAD_SPREAD, POD_UNAVAILABLE_BUDGET)
        needed = any(self._has(kind, attributes.namespace) for kind in kinds)
        return needed or _starts_in_order(attributes.document)

    def _is_checked(self, attributes: Attributes) -> bool:
        """Report whether a check has to see such a pod. An eviction does not show its pod."""
        if attributes.kind.resource != POD:
            return False
        budgets = self._has(POD_UNAVAILABLE_BUDGET, attributes.namespace)
        if attributes.subresource == EVICTION:
            return budgets or self._has(WORKLOAD_SPREAD, attributes.namespace)
        old = attributes.old or {}
        protected = budgets and _is_protected(old)
        if attributes.operation == "UPDATE":
            return protected and bool(operation_of_update(old, attributes.document or {}))
        if attributes.operation != "DELETE":
            return False
        placed = MATCHED in member(old, "metadata", "annotations") and "deletionTimestamp" not in old["metadata"]
        return protected or (placed and self._has(WORKLOAD_SPREAD, attributes.namespace))

    def _has(self, resource: Resource, namespace: str) -> bool:
        return any(place[0] == namespace for place in self._server.store.table(resource).objects)

    async def _ask(self, entry: _Entry, attributes: Attributes) -> Answer | None:
        """Return the webhook's answer; None if it is not called. Raises ApiError if it rejects, or is down."""
        asked = entry.asks(attributes.kind, attributes.operation, attributes.subresource)
        if not asked or not self._selected(entry, attributes):
            return None
        if not self.reachable:
            if entry.ignorable:
                return None
            why = "failed to call webhook: dial tcp: connect: connection refused"
            raise errors.internal(f'failed calling webhook "{entry.name}": {why}')
        _, request = reviews.decode(_body(attributes))
        replica = next(self._turns)
        answer = await replica.handlers[entry.path](request)
        if not answer.allowed:
            message = f'admission webhook "{entry.name}" denied the request: {answer.message}'
            raise errors.refusal(answer.code, answer.reason, message)
        if entry in self._validating and attributes.document is not None:
            replica.admitted(attributes.kind.resource, attributes.document)
        return answer

    def _selected(self, entry: _Entry, attributes: Attributes) -> bool:
        objects = [_labels(document) for document in (attributes.document, attributes.old) if document]
        if not any(entry.objects.matches(labels) for labels in objects):
            return False
        if attributes.kind.resource == NAMESPACE:
            return any(entry.namespaces.matches(labels) for labels in objects)
        if not attributes.kind.resource.namespaced:
            return True
        namespace = self._server.store.table(NAMESPACE).objects.get(("", attributes.namespace))
        return entry.namespaces.matches(_labels(namespace.document) if namespace else {})


def our_webhooks(
    server: ApiServer, bus: Callable[[str], Bus], settings: Settings, wires: Mapping[str, Wire | None] = ONE
) -> Webhooks:
    """Create the webhook of an installed Flotilla.

    A replica's own requests to the apiserver carry its name, under which it also has its `bus`.
    """
    replicas = [Replica(server, bus(name), settings, name, wire) for name, wire in wires.items()]
    return Webhooks(server, replicas, settings.gates())


def _starts_in_order(pod: Json | None) -> bool:
    """Report whether the standing rule of launch priorities matches a pod."""
    containers = mappings(member(pod or {}, "spec").get("containers"))
    names = {entry.get("name") for one in containers for entry in mappings(one.get("env"))}
    ordered = member(pod or {}, "metadata", "annotations").get(LAUNCH_PRIORITY) == LAUNCHED_IN_ORDER
    return len(containers) > 1 and (ordered or CONTAINER_PRIORITY_ENV in names)


def _is_protected(pod: Json) -> bool:
    """Report whether the rules of budgets match a stored pod."""
    named = typed(pod, Pod)
    return bool(related_budget(named.metadata)) and not is_exempt(named.metadata) and is_ready(named)


def _compiled(selector: Json) -> Selector:
    return Selector.compile(msgspec.convert(selector, LabelSelector))


def _labels(document: Json) -> dict[str, str]:
    return mapping(member(document, "metadata").get("labels"))


def _body(attributes: Attributes) -> bytes:
    """Return the AdmissionReview."""
    resource = attributes.kind.resource
    group_version = {"group": resource.group, "version": resource.version}
    request: Json = {
        "uid": "admission",
        "operation": attributes.operation,
        "kind": group_version | {"kind": resource.kind},
        "resource": group_version | {"resource": resource.plural},
        "subResource": attributes.subresource,
        "name": attributes.name,
        "namespace": attributes.namespace,
        "userInfo": {"username": attributes.writer},
        "object": attributes.document,
        "oldObject": attributes.old,
        "dryRun": attributes.dry_run,
    }
    return msgspec.json.encode({"apiVersion": reviews.VERSIONS[0], "kind": "AdmissionReview", "request": request})
