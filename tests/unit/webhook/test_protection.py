"""Deletion protection: the worked examples of deletionprotection.md §7 by number, and the rules of §3, §4."""

import asyncio
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from flotilla_common.api.admission.review import Named, Request, User
from flotilla_common.api.resources import CLAIM, CRD, POD, SECRET, Resource
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import ApiError, Page
from flotilla_webhook import protection
from flotilla_webhook.metrics import Metrics
from flotilla_webhook.protection import LiveCounts, Protection
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json

LABEL = "policy.kruise.io/delete-protection"
PREFIX = "forbidden by ResourcesProtectionDeletion for "
ALWAYS = f"{PREFIX}{LABEL}=Always"
CASCADING = f"{PREFIX}{LABEL}=Cascading and "
BOTH = "DeletionProtectionForCRDCascadingGate=true"
WIDGET = Resource("example.com", "v1", "widgets", "Widget")
PATHS = {
    "Deployment": "/validate-apps-deployment",
    "ReplicaSet": "/validate-apps-replicaset",
    "StatefulSet": "/validate-apps-statefulset",
    "Namespace": "/validate-namespace",
    "CustomResourceDefinition": "/validate-customresourcedefinition",
    "Service": "/validate-service",
    "Ingress": "/validate-ingress",
}


class Case:
    """A protection over a fake cluster."""

    def __init__(self, gates: str = BOTH) -> None:
        self.cluster = FakeApi()
        self.records: list[bytes] = []
        self.registry = CollectorRegistry()
        self.protection = Protection(
            Gates.parse(gates), LiveCounts(self.cluster.api), Metrics(self.registry), self.records.append
        )

    async def delete(self, kind: str, label: str, spec: Json | None = None, **extra: Any) -> str:
        """Return the refusal's message; empty if the deletion is allowed."""
        metadata = {"name": "x", "uid": "u1", "labels": {LABEL: label}} | extra.pop("metadata", {})
        if kind == CRD.kind:
            self.cluster.put(CRD, {"metadata": {"name": "x", "uid": "u1"}, "spec": DEFINITION})
        fields = {"operation": "DELETE", "kind": Named(version="v1", kind=kind)} | extra
        old = {"metadata": metadata, "spec": spec or {}}
        request = Request(uid="u", old_object=old, user_info=User("joe"), **fields)
        answer = await self.protection.handlers()[PATHS[kind]](request)
        assert answer.allowed or (answer.code, answer.reason) == (403, "")
        return answer.message


def pod(name: str, phase: str, **metadata: Any) -> Json:
    return {"metadata": {"name": name, "namespace": "x"} | metadata, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("kind", "label", "spec", "expected"),
    [
        pytest.param("Namespace", "Always", {}, ALWAYS, id="1"),
        pytest.param("Namespace", "Cascading", {}, "", id="6: nothing in it"),
        pytest.param("CustomResourceDefinition", "Always", {}, ALWAYS, id="7"),
        pytest.param("Deployment", "Cascading", {"replicas": 3}, f"{CASCADING}replicas 3>0", id="12"),
        pytest.param("Deployment", "Cascading", {"replicas": 0}, "", id="13"),
        pytest.param("Deployment", "Cascading", {}, "", id="replicas unset"),
        pytest.param("ReplicaSet", "Always", {"replicas": 0}, ALWAYS, id="14"),
        pytest.param("Service", "Cascading", {}, "", id="17"),
        pytest.param("Service", "Always", {}, ALWAYS, id="18"),
        pytest.param("Ingress", "Always", {}, ALWAYS, id="19"),
        pytest.param("StatefulSet", "always", {"replicas": 1}, "", id="21: other values protect nothing"),
        pytest.param("StatefulSet", "", {"replicas": 1}, "", id="empty value"),
    ],
)
async def test_label(kind: str, label: str, spec: Json, expected: str) -> None:
    assert await Case().delete(kind, label, spec) == expected


@pytest.mark.parametrize(
    ("pods", "claims", "expected"),
    [
        pytest.param(
            [pod("a", "Running"), pod("b", "Running"), pod("c", "Succeeded")], [], f"{CASCADING}active pods 2>0", id="2"
        ),
        pytest.param([pod("a", "Succeeded"), pod("b", "Failed")], [pod("c", "Pending")], "", id="3"),
        pytest.param(
            [pod(str(n), "Running" if n == 4 else "Succeeded") for n in range(5)],
            [],
            f"{CASCADING}active pods 1>0",
            id="the third page has one",
        ),
        pytest.param([], [pod("c", "Bound")], f'{CASCADING}"Bound" status pvc 1>0', id="4"),
        pytest.param([], [pod("c", "Bound", deletionTimestamp="2026-01-01T00:00:00Z")], "", id="5"),
        pytest.param([pod("a", "Pending")], [pod("c", "Bound")], f"{CASCADING}active pods 1>0", id="pods come first"),
        pytest.param(
            [pod(str(n), "Running") for n in range(5)], [], f"{CASCADING}active pods 2>0", id="the first page is enough"
        ),
    ],
)
async def test_namespace(pods: list[Json], claims: list[Json], expected: str) -> None:
    case = Case()
    for resource, documents in ((POD, pods), (CLAIM, claims)):
        for document in documents:
            case.cluster.put(resource, document)
    assert await case.delete("Namespace", "Cascading") == expected


DEFINITION = {
    "group": "example.com",
    "names": {"plural": "widgets", "listKind": "WidgetList"},
    "versions": [{"name": "v1alpha1"}, {"name": "v1", "storage": True}],
}


@pytest.mark.parametrize(
    ("gates", "metadata", "expected"),
    [
        pytest.param(BOTH, {}, f"{CASCADING}active CRs 1>0", id="8"),
        pytest.param(BOTH, {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "", id="9"),
        pytest.param("", {}, "feature-gate DeletionProtectionForCRDCascadingGate is not enabled", id="10"),
    ],
)
async def test_definition(gates: str, metadata: Json, expected: str) -> None:
    case = Case(gates)
    case.cluster.put(WIDGET, {"metadata": {"name": "w", "namespace": "n"} | metadata, "status": "any shape"})
    assert await case.delete("CustomResourceDefinition", "Cascading", DEFINITION) == expected


async def test_only_metadata_of_custom_resources_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may be large, and may contain secrets."""
    case = Case()
    asked: list[tuple[str, bool]] = []

    async def listed(resource: Resource, *_: Any, metadata_only: bool, **__: Any) -> Page:
        asked.append((resource.plural, metadata_only))
        return Page([], "1")

    monkeypatch.setattr(case.cluster, "list", listed)
    await case.delete("CustomResourceDefinition", "Cascading", DEFINITION)
    assert asked == [("widgets", True)]


async def test_who_may_not_count_refuses_and_says_what_is_missing() -> None:
    case = Case()
    case.cluster.fail_lists = ApiError(403, "Forbidden", 'User "w" cannot list resource "widgets"')
    message = await case.delete("CustomResourceDefinition", "Cascading", DEFINITION)
    assert message == (
        'failed to list CRs of example.com/v1, Kind=WidgetList: User "w" cannot list resource "widgets"; a ClusterRole '
        "that allows it needs the label policy.kruise.io/aggregate-to-crd-protection=true"
    )


async def test_row_11_always_needs_no_second_gate() -> None:
    assert await Case("").delete("CustomResourceDefinition", "Always", DEFINITION) == ALWAYS


async def test_a_failing_list_refuses() -> None:
    case = Case()
    case.cluster.fail_lists = ApiError(500, "InternalError", "no quorum")
    assert await case.delete("Namespace", "Cascading") == f"{PREFIX}list pods error: no quorum"
    message = await case.delete("CustomResourceDefinition", "Cascading", DEFINITION)
    assert message == "failed to list CRs of example.com/v1, Kind=WidgetList: no quorum"


@pytest.mark.parametrize(
    ("gates", "extra"),
    [
        pytest.param("ResourcesDeletionProtection=false", {}, id="23: gate off"),
        pytest.param("", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, id="24: already going"),
        pytest.param("", {"sub_resource": "status"}, id="subresource"),
        pytest.param("", {"operation": "UPDATE"}, id="other operation"),
    ],
)
async def test_allowed(gates: str, extra: Json) -> None:
    assert await Case(gates).delete("Deployment", "Always", **extra) == ""


async def test_row_25_a_dry_run_is_refused_as_well() -> None:
    assert await Case().delete("Namespace", "Always", dry_run=True) == ALWAYS


async def test_without_old_object_or_with_a_broken_one() -> None:
    handler = Case().protection.handlers()["/validate-namespace"]
    assert (await handler(Request(uid="u", operation="DELETE"))).allowed
    assert (await handler(Request(uid="u", operation="DELETE", old_object={}))).code == 400


def test_services_and_ingresses_are_served_only_with_the_gate() -> None:
    assert "/validate-service" in Case().protection.handlers()
    assert "/validate-service" not in Case("ResourcesDeletionProtection=false").protection.handlers()


async def test_refusals_are_counted_and_recorded() -> None:
    case = Case()
    await case.delete("Deployment", "Always", metadata={"namespace": "n", "name": "d"})
    await case.delete("Namespace", "Always")
    await case.delete("CustomResourceDefinition", "Always")
    await case.delete("Service", "Always")
    await case.delete("Deployment", "other")
    value = case.registry.get_sample_value
    series = {"kind_namespace_name": "Deployment_n_d", "username": "joe"}
    assert value("workload_deletion_protection", series) == 1
    assert value("namespace_deletion_protection", {"name": "x", "username": "joe"}) == 1
    assert value("crd_deletion_protection", {"name": "x", "username": "joe"}) == 1
    assert [msgspec.json.decode(line)["Kind"] for line in case.records] == [
        "Deployment",
        "Namespace",
        "CustomResourceDefinition",
    ]
    assert case.records[0] == (
        b'{"Event":"DeletionProtection","Kind":"Deployment","Namespace":"n","Name":"d","UserAgent":"joe"}'
    )


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"uid": "u2"}, "the CRD x has another uid"),
        ({"name": "y"}, 'customresourcedefinitions "y" not found'),
        ({"name": "../secrets"}, 'customresourcedefinitions "../secrets" not found'),
    ],
)
async def test_a_made_up_definition_shows_nothing_of_what_there_is(metadata: Json, why: str) -> None:
    """Any client may send a review to the port: it must not cause a request to the apiserver."""
    case = Case()
    case.cluster.put(SECRET, {"metadata": {"name": "s", "namespace": "x"}})
    forged = {"group": "", "names": {"plural": "secrets"}, "versions": [{"name": "v1", "storage": True}]}
    refusal = await case.delete("CustomResourceDefinition", "Cascading", forged, metadata=metadata)
    assert refusal == f"failed to get the CRD: {why}"
    refusal = await case.delete("CustomResourceDefinition", "Cascading", forged)
    assert refusal == ""  # what is stored under this name and uid has no objects


async def test_what_cannot_be_looked_through_in_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The apiserver would let the deletion happen if it had to wait for too long."""
    case = Case()

    async def slow(*_: Any, **__: Any) -> Page:
        await asyncio.sleep(0)
        return Page([], "1", next_token="more")

    monkeypatch.setattr(protection, "SEARCH_SECONDS", 0.05)
    monkeypatch.setattr(case.cluster, "list", slow)
    refusal = await case.delete("Namespace", "Cascading")
    assert refusal == f"{PREFIX}list pods error: the search took longer than 0.05 s"
