"""Karmada's interpretation of objects of each kind, in both versions."""

import copy
from typing import Any

import pytest

from flotilla_common.api.kinds.catalogue import KINDS, named
from tests.support.lua import Lua, interpreters
from tests.testkit.documents import Json

ALPHA, BETA = "apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"
LUA = Lua()
TEMPLATE: Json = {"spec": {"containers": [{"name": "main"}]}}
GENERATION = "resourcetemplate.karmada.io/generation"
RETAIN = "resourcetemplate.karmada.io/retain-replicas"


def requirements(template: Json) -> tuple[Json]:
    return ({"of": template["spec"]["containers"][0]["name"]},)


def dependencies(template: Json, namespace: str) -> tuple[list[Json] | None, None]:
    """Return dependencies as Karmada does: a list, or None if there are none, and an error."""
    names = [one["name"] for one in template["spec"]["containers"]]
    return [{"kind": "Secret", "namespace": namespace, "name": name} for name in names] or None, None


LUA.provide({"accuratePodRequirements": requirements, "getPodDependencies": dependencies})
SCRIPTS = interpreters()
TARGETS = sorted(SCRIPTS)


def call(kind: str, version: str, operation: str, function: str, *arguments: Any) -> Any:
    return LUA.call(SCRIPTS[kind, version][operation]["luaScript"], function, *arguments)


def is_healthy(kind: str, spec: Json, status: Json | None, version: str = BETA) -> bool:
    found = {"metadata": {"generation": 2}, "spec": spec} | ({} if status is None else {"status": status})
    return call(kind, version, "healthInterpretation", "InterpretHealth", found)


def aggregated(kind: str, version: str, desired: Json, *statuses: Json | None) -> Json:
    items = [{"clusterName": f"c{at}", "status": status} for at, status in enumerate(statuses)]
    return call(kind, version, "statusAggregation", "AggregateStatus", desired, items)["status"]


def test_kinds_that_nobody_propagates_have_none():
    assert {kind.name for kind in KINDS} - {kind for kind, _ in TARGETS} == {"NodeImage", "NodePodProbe"}


COUNTS: Json = {"observedGeneration": 2, "replicas": 4, "updatedReplicas": 4, "availableReplicas": 4}


@pytest.mark.parametrize("kind", ["CloneSet", "StatefulSet"])
@pytest.mark.parametrize("version", [ALPHA, BETA])
def test_health_of_sets(kind: str, version: str):
    spec: Json = {"replicas": 4}
    paused: Json = {"paused": True} if (kind, version) == ("CloneSet", ALPHA) else {"rollingUpdate": {"paused": True}}
    assert is_healthy(kind, spec, COUNTS, version)
    assert not is_healthy(kind, spec, None, version)
    assert not is_healthy(kind, spec, COUNTS | {"observedGeneration": 1}, version)
    assert not is_healthy(kind, spec, COUNTS | {"updatedReplicas": 1}, version)
    assert is_healthy(kind, spec | {"updateStrategy": paused}, COUNTS | {"updatedReplicas": 1}, version)
    assert not is_healthy(kind, spec | {"updateStrategy": paused}, COUNTS | {"availableReplicas": 3}, version)


def test_health_of_jobs():
    """A running one is not moved to another cluster."""
    assert not is_healthy("BroadcastJob", {}, None)
    assert is_healthy("BroadcastJob", {}, {"phase": "running"})
    assert is_healthy("BroadcastJob", {}, {"phase": "completed"})
    assert not is_healthy("BroadcastJob", {}, {"phase": "failed"})


@pytest.mark.parametrize(("kind", "version"), TARGETS)
def test_health_is_a_verdict_on_anything(kind: str, version: str):
    for status in (None, {}, {"observedGeneration": "x", "conditions": "y"}):
        assert isinstance(is_healthy(kind, {}, status, version), bool)


@pytest.mark.parametrize(("kind", "version"), [target for target in TARGETS if "replicaResource" in SCRIPTS[target]])
def test_replicas(kind: str, version: str):
    inner = {"cloneSetTemplate": {"spec": {"template": TEMPLATE}}} if kind == "UnitedDeployment" else TEMPLATE
    desired = {"spec": {"replicas": 5, "template": inner}}
    assert call(kind, version, "replicaResource", "GetReplicas", desired) == [5, {"of": "main"}]
    assert call(kind, version, "replicaResource", "GetReplicas", {"spec": {"template": inner}})[0] == 1
    revised = call(kind, version, "replicaRevision", "ReviseReplica", desired, 3)
    assert revised == {"spec": {"replicas": 3, "template": inner}}


def test_which_kinds_are_divided():
    found = {kind for kind, version in TARGETS if "replicaResource" in SCRIPTS[kind, version]}
    assert found == {kind.name for kind in KINDS if kind.scale}


@pytest.mark.parametrize(("kind", "version"), [target for target in TARGETS if "retention" in SCRIPTS[target]])
def test_retention_of_replicas_and_of_odd_objects(kind: str, version: str):
    assert call(kind, version, "retention", "Retain", {}, {"spec": {"replicas": 9}}) == {}
    if "replicaResource" in SCRIPTS[kind, version]:
        desired: Json = {"metadata": {"labels": {RETAIN: "true"}}, "spec": {"replicas": 5}}
        observed: Json = {"spec": {"replicas": 9}}
        assert call(kind, version, "retention", "Retain", desired, observed)["spec"] == {"replicas": 9}
        del desired["metadata"]
        assert call(kind, version, "retention", "Retain", desired, observed)["spec"] == {"replicas": 5}


def test_retention_of_what_members_write():
    observed: Json = {"spec": {"scaleStrategy": {"podsToDelete": ["web-a"]}}}
    kept = call("CloneSet", BETA, "retention", "Retain", {"spec": {"replicas": 2}}, observed)
    assert kept["spec"] == {"replicas": 2, "scaleStrategy": {"podsToDelete": ["web-a"]}}
    own: Json = {"spec": {"scaleStrategy": {"podsToDelete": ["web-b"]}}}
    assert call("CloneSet", BETA, "retention", "Retain", own, observed) == own
    request: Json = {"spec": {"podName": "web-a", "containers": [{"name": "main", "ports": []}]}}
    kept = call("ContainerRecreateRequest", BETA, "retention", "Retain", {"spec": {"podName": "web-a"}}, request)
    assert kept["spec"]["containers"][0]["name"] == "main"


@pytest.mark.parametrize(
    ("kind", "spec", "name"),
    [
        ("CloneSet", {"template": TEMPLATE}, "main"),
        ("StatefulSet", {"template": TEMPLATE}, "main"),
        ("DaemonSet", {"template": TEMPLATE}, "main"),
        ("BroadcastJob", {"template": TEMPLATE}, "main"),
        ("UnitedDeployment", {"template": {"deploymentTemplate": {"spec": {"template": TEMPLATE}}}}, "main"),
        ("AdvancedCronJob", {"template": {"jobTemplate": {"spec": {"template": TEMPLATE}}}}, "main"),
        ("AdvancedCronJob", {"template": {"broadcastJobTemplate": {"spec": {"template": TEMPLATE}}}}, "main"),
        ("ImagePullJob", {"pullSecrets": ["login"]}, "login"),
        ("ImageListPullJob", {"pullSecrets": ["login"]}, "login"),
    ],
)
def test_dependencies(kind: str, spec: Json, name: str):
    for version in (ALPHA, BETA):
        found = {"metadata": {"namespace": "shop"}, "spec": spec}
        (dependency,) = call(kind, version, "dependencyInterpretation", "GetDependencies", found)
        assert (dependency["kind"], dependency["namespace"], dependency["name"]) == ("Secret", "shop", name)
        assert not call(kind, version, "dependencyInterpretation", "GetDependencies", {"metadata": {}})


def test_pods_without_dependencies():
    """Karmada takes a list only."""
    found = {"metadata": {"namespace": "shop"}, "spec": {"template": {"spec": {"containers": []}}}}
    assert call("CloneSet", BETA, "dependencyInterpretation", "GetDependencies", found) == {}


def member(generation: int = 3, observed: int = 3, given: int | None = 7, **counts: Any) -> Json:
    """Return the status of one member as `statusReflection` gives it."""
    metadata: Json = {"generation": generation}
    if given is not None:
        metadata["annotations"] = {GENERATION: str(given)}
    found = {"metadata": metadata, "status": {"observedGeneration": observed, **counts}}
    return call("CloneSet", BETA, "statusReflection", "ReflectStatus", found)


def test_reflected_status():
    assert member(replicas=2, updateRevision="web-1", unknown=1) == {
        "observedGeneration": 3,
        "generation": 3,
        "resourceTemplateGeneration": 7,
        "replicas": 2,
        "updateRevision": "web-1",
    }


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([], 7),
        ([member(), member(generation=12, observed=12)], 7),
        ([member(), member(generation=12, observed=11)], 6),
        ([member(), member(given=6)], 6),
        ([member(), None], 6),
        ([member(given=None), member(given=None)], 7),
    ],
)
def test_observed_generation(members: list[Json | None], expected: int):
    desired: Json = {"metadata": {"generation": 7}, "status": {"observedGeneration": 6}}
    assert aggregated("CloneSet", BETA, desired, *members)["observedGeneration"] == expected


def test_counts_are_summed_with_their_zeros():
    desired: Json = {"metadata": {"generation": 7}}
    status = aggregated(
        "CloneSet",
        BETA,
        desired,
        member(replicas=2, updatedReplicas=1, updateRevision="web-1", labelSelector="app=web"),
        member(replicas=3, updatedReplicas=3, updateRevision="web-1", expectedUpdatedReplicas=3),
    )
    assert status == {
        "observedGeneration": 7,
        "replicas": 5,
        "readyReplicas": 0,
        "availableReplicas": 0,
        "updatedReplicas": 4,
        "updatedReadyReplicas": 0,
        "updatedAvailableReplicas": 0,
        "expectedUpdatedReplicas": 3,
        "updateRevision": "web-1",
        "currentRevision": "",
        "labelSelector": "app=web",
    }


def test_jobs_end_with_the_last_of_them():
    running: Json = {"phase": "running", "startTime": "2026-01-01T00:00:05Z", "desired": 2, "active": 2}
    ended: Json = {"phase": "completed", "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T01:00:00Z"}
    later = ended | {"completionTime": "2026-01-01T02:00:00Z", "succeeded": 1, "desired": 1}
    status = aggregated("BroadcastJob", BETA, {}, running, ended)
    assert status["phase"] == "running"
    assert status["startTime"] == "2026-01-01T00:00:00Z"
    assert "completionTime" not in status
    status = aggregated("BroadcastJob", BETA, {}, later, ended)
    assert (status["phase"], status["completionTime"]) == ("completed", "2026-01-01T02:00:00Z")
    assert aggregated("BroadcastJob", BETA, {}, later, {"phase": "failed"})["phase"] == "failed"
    assert aggregated("AdvancedCronJob", BETA, {}, {"active": [{"name": "a"}]}, {"active": [{"name": "b"}]})[
        "active"
    ] == [{"name": "a"}, {"name": "b"}]


@pytest.mark.parametrize(("kind", "version"), TARGETS)
def test_nothing_but_fields_of_the_version(kind: str, version: str):
    """The aggregated status is written to the control plane, which has the same CRDs."""
    group, name = version.split("/")
    schema = named(group, kind).rules().schema(name).status
    for members in ([], [None], [{}], [{"phase": 1, "active": "x", "replicas": "y"}]):
        status = aggregated(kind, version, {"metadata": {"generation": 1}}, *copy.deepcopy(members))
        assert status.keys() <= schema["properties"].keys()
        assert set(schema.get("required", [])) <= status.keys()
