"""The webhook's side of WorkloadSpreads over a fake cluster: pods are created and deleted through it."""

from typing import Any

import msgspec

from flotilla_common.api.admission.review import Answer, Named, Request
from flotilla_common.api.kinds.workloadspread.types import MATCHED, WORKLOAD_SPREAD
from flotilla_common.api.resources import CONFIG_MAP, POD
from flotilla_common.clock import SystemEntropy
from flotilla_common.kube.reflector import HeadMeta
from flotilla_common.settings import Settings
from flotilla_webhook.pods.activation import ActiveRules
from flotilla_webhook.pods.admission import Check, PodAdmission, PodChecks
from flotilla_webhook.spreading.step import Spreads
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.testkit.admission import applied
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json

NAMESPACE = "ns"
CLONE_SET = ("apps.kruise.io/v1beta1", "CloneSet", "web")
MARKED_AT = "2025-12-31T23:59:00Z"


def subset(name: str, limit: int | str | None = None, **more: Any) -> Json:
    return {"name": name} | ({} if limit is None else {"maxReplicas": limit}) | more


def spread(
    *subsets: Json, name: str = "ws", target: tuple[str, str, str] = CLONE_SET, made: str = "", **spec: Any
) -> Json:
    api_version, kind, workload = target
    return {
        "apiVersion": WORKLOAD_SPREAD.api_version,
        "kind": WORKLOAD_SPREAD.kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"u-{name}", "generation": 1}
        | ({"creationTimestamp": made} if made else {}),
        "spec": {
            "targetRef": {"apiVersion": api_version, "kind": kind, "name": workload},
            "subsets": list(subsets),
            **spec,
        },
    }


def owner(api_version: str, kind: str, name: str) -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"u-{name}", "controller": True}


def pod(name: str = "", of: tuple[str, str, str] | None = CLONE_SET, **metadata: Any) -> Json:
    """Return a pod; without a name it has only `generateName`."""
    named = {"name": name} if name else {"generateName": "web-"}
    owners = {"ownerReferences": [owner(*of)]} if of is not None else {}
    return {"metadata": named | owners | metadata, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}


def mark(document: Json) -> Json:
    """Return the decoded annotation of a pod; empty without."""
    found: Json = msgspec.json.decode(document["metadata"].get("annotations", {}).get(MATCHED, "{}"))
    return found


class World:
    """One fake cluster, and the pod webhooks of one replica over it."""

    def __init__(
        self,
        *spreads: Json,
        cluster: FakeApi | None = None,
        clock: FakeClock | None = None,
        bus: FakeBus | None = None,
        on: bool = True,
        more_checks: tuple[Check, ...] = (),
    ) -> None:
        self.cluster = cluster or FakeApi()
        self.clock = clock or FakeClock()
        for one in spreads:
            self.cluster.put(WORKLOAD_SPREAD, one)
        self.spreads = Spreads(
            self.cluster.api, bus or FakeBus(), self.clock, SystemEntropy(), on=on, settings=Settings()
        )
        self.pods = PodAdmission([self.spreads.step()], ActiveRules(self.clock))
        self.checks = PodChecks(self.cluster.api, [self.spreads.check(), *more_checks], ActiveRules(self.clock))

    async def watch(self) -> "World":
        """List everything as the watch does."""
        await self.spreads.cache.listing()
        for (plural, *_), document in self.cluster.objects.items():
            if plural == WORKLOAD_SPREAD.plural:
                head = HeadMeta(name=document["metadata"]["name"])
                await self.spreads.cache.listed(head, msgspec.Raw(msgspec.json.encode(document)))
        await self.spreads.cache.complete(str(self.cluster.version))
        return self

    def configure(self, white_list: Json) -> None:
        """Store the white list of administrators."""
        data = {"WorkloadSpread_Watch_Custom_Workload_WhiteList": msgspec.json.encode(white_list).decode()}
        metadata = {"namespace": "kruise-system", "name": "kruise-configuration"}
        self.cluster.put(CONFIG_MAP, {"metadata": metadata, "data": data})

    async def admission(self, document: Json, *, dry_run: bool = False, namespace: str = NAMESPACE) -> Answer:
        """Return the answer to a create."""
        request = Request(
            uid="u",
            operation="CREATE",
            namespace=namespace,
            object=document,
            resource=Named(version="v1", resource="pods"),
            dry_run=dry_run,
        )
        return await self.pods.mutate(request)

    async def create(self, document: Json, **more: Any) -> Json:
        """Return the pod as it is stored."""
        answer = await self.admission(document, **more)
        if not answer.allowed:
            raise AssertionError(f"{answer.code}: {answer.message}")
        return applied(document, answer)

    async def places(self, *names: str, of: tuple[str, str, str] = CLONE_SET) -> str:
        """Return the subsets of new pods of these names, one letter each; `_` for none."""
        found = [mark(await self.create(pod(name, of))).get("subset", "_") for name in names]
        return "".join(found)

    async def delete(self, document: Json, *, dry_run: bool = False) -> Answer:
        """Return the answer to a delete."""
        request = Request(
            uid="u", operation="DELETE", namespace=NAMESPACE, old_object=document, dry_run=dry_run, name="?"
        )
        return await self.checks.validate(request)

    async def evict(self, document: Json, **options: Any) -> Answer:
        """Return the answer to an eviction of a pod that is stored."""
        name = document["metadata"]["name"]
        self.cluster.put(POD, document | {"metadata": document["metadata"] | {"namespace": NAMESPACE}})
        eviction = {"metadata": {"name": name, "namespace": NAMESPACE}, "deleteOptions": options}
        request = Request(
            uid="u", operation="CREATE", sub_resource="eviction", namespace=NAMESPACE, name=name, object=eviction
        )
        return await self.checks.validate(request)

    def stored(self, name: str = "ws") -> Json:
        return self.cluster.objects[WORKLOAD_SPREAD.plural, NAMESPACE, name]

    def book(self, version: str = "versionIgnored", name: str = "ws") -> dict[str, Json]:
        """Return the stored book, by subset."""
        books = self.stored(name).get("status", {}).get("versionedSubsetStatuses", {})
        return {entry["name"]: entry for entry in books.get(version, [])}

    def missing(self, version: str = "versionIgnored") -> list[int]:
        return [entry["missingReplicas"] for entry in self.book(version).values()]
