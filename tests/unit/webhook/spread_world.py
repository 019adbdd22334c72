"""The webhook's side of WorkloadSpreads over a fake cluster: pods are created and deleted through it."""

from typing import Any

import msgspec

from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.kinds.workloadspread.types import MATCHED, WORKLOAD_SPREAD
from flotilla_common.api.resources import POD
from flotilla_common.clock import SystemEntropy
from flotilla_common.settings import Settings
from flotilla_webhook.pods.activation import ActiveRules
from flotilla_webhook.pods.admission import Check, PodAdmission, PodChecks
from flotilla_webhook.spreading.step import Spreads
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.testkit.admission import applied, configure, listed, new_pod
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json
from tests.testkit.documents import owner as owner_of

NAMESPACE = "ns"
CLONE_SET = ("apps.kruise.io/v1beta1", "CloneSet", "web")


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
    return owner_of(kind, name, f"u-{name}", api_version)


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
        await listed(self.spreads.cache, self.cluster, WORKLOAD_SPREAD)
        return self

    def configure(self, white_list: Json) -> None:
        """Store the white list of administrators."""
        text = msgspec.json.encode(white_list).decode()
        configure(self.cluster, WorkloadSpread_Watch_Custom_Workload_WhiteList=text)

    async def admission(self, document: Json, *, dry_run: bool = False, namespace: str = NAMESPACE) -> Answer:
        """Return the answer to a create."""
        return await self.pods.mutate(new_pod(document, namespace, dry_run=dry_run))

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
