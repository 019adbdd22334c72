"""The webhook's side of PodUnavailableBudgets over a fake cluster: pods are deleted, evicted and updated through it."""

from typing import Any

import msgspec

from flotilla_common.api.admission.review import Answer, Named, Request, User
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.resources import NAMESPACE as NAMESPACES
from flotilla_common.api.resources import POD
from flotilla_common.clock import SystemEntropy
from flotilla_common.gates import Gates
from flotilla_webhook.budgets.annotation import BudgetAnnotation
from flotilla_webhook.budgets.check import Budgets
from flotilla_webhook.budgets.reports import BudgetHolders
from flotilla_webhook.pods.activation import ActiveRules
from flotilla_webhook.pods.admission import Check, PodAdmission, PodChecks
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.testkit.admission import applied, listed
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json
from tests.unit.budget.build import pod_document
from tests.unit.webhook.fakes import records

NAMESPACE = "default"
NOW = "2026-01-01T00:00:00Z"
BEFORE = "2025-12-31T23:00:00Z"
BOTH_GATES = "PodUnavailableBudgetUpdateGate=true"
USER = "jane"


def pod(name: str = "a", **members: Any) -> Json:
    """Return a pod that was there and ready before the clock of the fake cluster began."""
    document = pod_document(name, **members)
    document["metadata"].setdefault("creationTimestamp", BEFORE)
    document["metadata"]["creationTimestamp"] = members.get("metadata", {}).get("creationTimestamp", BEFORE)
    for condition in document["status"]["conditions"]:
        condition.setdefault("lastTransitionTime", BEFORE)
        condition["lastTransitionTime"] = BEFORE
    return document


def with_image(document: Json, image: str) -> Json:
    container = document["spec"]["containers"][0] | {"image": image}
    return document | {"spec": document["spec"] | {"containers": [container]}}


def with_metadata(document: Json, **metadata: Any) -> Json:
    return document | {"metadata": document["metadata"] | metadata}


def budget(allowed: int = 1, *, name: str = "pub", metadata: Json | None = None, **members: Any) -> Json:
    """Return a budget after a pass of its controller: of three pods, `allowed` may be disrupted."""
    return {
        "apiVersion": POD_UNAVAILABLE_BUDGET.api_version,
        "kind": POD_UNAVAILABLE_BUDGET.kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"u-{name}"} | (metadata or {}),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}} | members.get("spec", {}),
        "status": {
            "unavailableAllowed": allowed,
            "currentAvailable": 3,
            "desiredAvailable": 3 - allowed,
            "totalReplicas": 3,
        }
        | members.get("status", {}),
    }


class ToldBus(FakeBus):
    """A bus that keeps what was published without waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Json] = []

    def publish_soon(self, subject: str, data: bytes) -> None:
        self.told.append(msgspec.json.decode(data))


class World:
    """One fake cluster, and the checks of pods of one replica over it."""

    def __init__(
        self,
        *budgets: Json,
        cluster: FakeApi | None = None,
        clock: FakeClock | None = None,
        gates: str = BOTH_GATES,
        eviction_code: int = 429,
        before: tuple[Check, ...] = (),
        after: tuple[Check, ...] = (),
        bus: ToldBus | None = None,
    ) -> None:
        self.cluster = cluster or FakeApi()
        self.clock = clock or FakeClock()
        self.bus = bus or ToldBus()
        self.log: list[Json] = []
        self.cluster.put(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        for one in budgets:
            self.cluster.put(POD_UNAVAILABLE_BUDGET, one)
        self.records = records(self.cluster, self.bus, lambda line: self.log.append(msgspec.json.decode(line)))
        self.budgets = Budgets(
            self.cluster.api,
            self.clock,
            SystemEntropy(),
            Gates.parse(gates),
            self.records,
            BudgetHolders(self.bus, self.clock),
            eviction_code=eviction_code,
        )
        self.annotation = BudgetAnnotation(self.cluster.api, self.clock, self.budgets)
        self.pods = PodAdmission([self.annotation.step()], ActiveRules(self.clock))
        checks = [*before, self.budgets.check(), *after]
        self.checks = PodChecks(self.cluster.api, checks, ActiveRules(self.clock))

    async def watch(self) -> "World":
        """List the existing objects into the cache, as a watch does."""
        await listed(self.budgets.cache, self.cluster, POD_UNAVAILABLE_BUDGET)
        return self

    async def delete(self, document: Json, *, dry_run: bool = False) -> Answer:
        """Return the answer to a delete."""
        return await self.checks.validate(_request("DELETE", old_object=document, dry_run=dry_run))

    async def update(self, before: Json, after: Json, *, dry_run: bool = False) -> Answer:
        """Return the answer to an update."""
        return await self.checks.validate(_request("UPDATE", object=after, old_object=before, dry_run=dry_run))

    async def evict(self, document: Json, **options: Any) -> Answer:
        """Return the answer to an eviction of a pod that is stored."""
        name = document["metadata"]["name"]
        self.cluster.put(POD, document)
        eviction = {"metadata": {"name": name, "namespace": NAMESPACE}, "deleteOptions": options}
        return await self.checks.validate(_request("CREATE", object=eviction, sub_resource="eviction", name=name))

    async def create(self, document: Json, namespace: str = NAMESPACE) -> Json:
        """Return the pod as it is stored."""
        request = _request("CREATE", object=document, namespace=namespace, resource=Named(resource="pods"))
        answer = await self.pods.mutate(request)
        assert answer.allowed, answer.message
        return applied(document, answer)

    def stored(self, name: str = "pub") -> Json:
        return self.cluster.objects[POD_UNAVAILABLE_BUDGET.plural, NAMESPACE, name]

    def entries(self) -> Json:
        """Return what is written down: the units that are left, and the pods that hold the others."""
        status = self.stored()["status"]
        return {"allowed": status["unavailableAllowed"]} | {
            key: sorted(status[key]) for key in ("disruptedPods", "unavailablePods") if status.get(key)
        }


def _request(operation: str, **members: Any) -> Request:
    return Request(**({"uid": "u", "namespace": NAMESPACE, "user_info": User(USER)} | members), operation=operation)
