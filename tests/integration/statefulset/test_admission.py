"""StatefulSets and PersistentPodStates as kubectl writes and reads them.

Covers the words of refusals, both versions, columns, scale and explain (statefulset.md §1 to §3, persistentpodstate.md
§1 to §3).
"""

import json
from typing import Any

import pytest

from tests.support.workspace import Workspace
from tests.testkit.documents import Json

IMMUTABLE = "updates to statefulset spec for fields other than replicas, template"


def statefulset(version: str = "v1beta1", pod: Json | None = None, **spec: Any) -> Json:
    """Return a set without pods."""
    labels = {"app": "web"}
    containers = [{"name": "nginx", "image": "nginx:alpine"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers, **(pod or {})}}
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "StatefulSet",
        "metadata": {"name": "web"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template} | spec,
    }


def state(name: str = "web", version: str = "v1beta1", **spec: Any) -> Json:
    target = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "web"}
    required = {"keys" if version == "v1beta1" else "nodeTopologyKeys": ["kubernetes.io/hostname"]}
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "PersistentPodState",
        "metadata": {"name": name},
        "spec": {"targetRef": target, "requiredPersistentTopology": required} | spec,
    }


def patched(space: Workspace, kind: str, body: Json) -> str:
    return space.refuses_patch(kind, "web", body)


def old(space: Workspace, plural: str) -> Json:
    """Return the object in the older version."""
    return space.read(f"{plural}.v1alpha1.apps.kruise.io", "web")


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param({"replicas": -1}, "spec.replicas: Invalid value: -1: should be a non-negative integer", id="-1"),
        pytest.param(
            {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}},
            "maxUnavailable: Invalid value: 2: can only work with Parallel PodManagementPolicyType",
            id="one after the other",
        ),
        pytest.param(
            {"updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}}},
            "must contains InPlaceUpdateReady when podUpdatePolicy is InPlaceIfPossible",
            id="no readiness gate",
        ),
        pytest.param(
            {"pod": {"containers": [{"name": "nginx"}]}},
            "spec.template.spec.containers[0].image: Required value",
            id="the apiserver's own rules for pods",
        ),
        pytest.param(
            {"updateStrategy": {"rollingUpdate": {"partition": "50%"}}}, "Expected `int`, got `str`", id="a wrong type"
        ),
    ],
)
def test_refusals(space: Workspace, version: str, document: Json, message: str):
    said = space.refuses(statefulset(version, **document))
    assert message in said


def test_fields_of_the_newer_version_are_judged(space: Workspace):
    said = space.refuses(statefulset(reserveOrdinals=["5-3", -1], ordinals={"start": -1}))
    assert "0 th reserve ordinal is invalid: 5-3, err = '5-3' ends before it starts" in said
    assert "1 th reserve ordinal is negative: -1" in said
    assert "spec.ordinals.start: Invalid value: -1" in said


def test_several_faults_are_one_message(space: Workspace):
    said = space.refuses(statefulset(selector={}, podManagementPolicy="Any"))
    assert 'admission webhook "vstatefulset.kb.io" denied the request: [spec.podManagementPolicy: ' in said


def test_a_name_must_be_a_host_name(space: Workspace):
    document = statefulset()
    document["metadata"]["name"] = "web.shop"
    assert 'metadata.name: Invalid value: "web.shop": a lowercase RFC 1123 label' in space.refuses(document)


def test_what_never_changes(space: Workspace):
    space.apply(statefulset(serviceName="headless"))
    assert IMMUTABLE in patched(space, "asts", {"spec": {"serviceName": "other"}})
    assert IMMUTABLE in patched(space, "asts", {"spec": {"podManagementPolicy": "Parallel"}})
    keys = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    assert IMMUTABLE in patched(space, "asts", {"spec": {"selector": keys}})


def test_in_place_only_takes_images_alone(space: Workspace):
    gate = {"readinessGates": [{"conditionType": "InPlaceUpdateReady"}]}
    strategy = {"rollingUpdate": {"podUpdatePolicy": "InPlaceOnly"}}
    space.apply(statefulset(pod=gate, updateStrategy=strategy))
    space.apply(
        statefulset(pod=gate | {"containers": [{"name": "nginx", "image": "nginx:mainline"}]}, updateStrategy=strategy)
    )
    said = patched(space, "asts", {"spec": {"template": {"spec": {"hostNetwork": True}}}})
    assert "invalid template modified with InPlaceOnly strategy: add /hostNetwork, currently only image update" in said


def test_defaults_and_both_versions(space: Workspace):
    space.apply(statefulset(reserveOrdinals=[1, "3-5"], lifecycle={"preDelete": {"labelsHandler": {"a": "b"}}}))
    spec = space.read("asts", "web")["spec"]
    assert (spec["podManagementPolicy"], spec["revisionHistoryLimit"]) == ("OrderedReady", 10)
    assert spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == 1
    assert spec["reserveOrdinals"] == [1, "3-5"]
    shown = old(space, "statefulsets")
    assert shown["apiVersion"] == "apps.kruise.io/v1alpha1"
    assert not {"reserveOrdinals", "lifecycle", "persistentVolumeClaimRetentionPolicy"} & shown["spec"].keys()
    assert shown["spec"]["updateStrategy"] == spec["updateStrategy"]


def test_applying_a_manifest_once_more_changes_nothing(space: Workspace):
    claims = [
        {
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
    ]
    first = space.apply(statefulset(volumeClaimTemplates=claims))
    again = space.apply(statefulset(volumeClaimTemplates=claims))
    assert first["metadata"]["generation"] == again["metadata"]["generation"] == 1


def test_ready_seconds_of_the_built_in_kind_stand_elsewhere(space: Workspace):
    text = json.dumps(statefulset(minReadySeconds=5))
    assert 'unknown field "spec.minReadySeconds"' in space.refuses(text)
    space.kubectl("create", "--validate=warn", "-f", "-", stdin=text)
    assert "minReadySeconds" not in space.read("asts", "web")["spec"]


def test_columns(space: Workspace):
    space.apply(statefulset())
    header, row = space.kubectl("get", "asts").splitlines()
    assert header.split() == ["NAME", "DESIRED", "CURRENT", "UPDATED", "READY", "AGE"]
    assert row.split()[:2] == ["web", "0"]
    header, row = space.kubectl("get", "asts", "-o", "wide").splitlines()
    assert header.split()[6:] == ["CONTAINERS", "IMAGES"]
    assert row.split()[-2:] == ["nginx", "nginx:alpine"]


def test_scale(space: Workspace):
    space.apply(statefulset())
    assert "statefulset.apps.kruise.io/web scaled" in space.kubectl("scale", "asts", "web", "--replicas=2")
    assert space.read("asts", "web")["spec"]["replicas"] == 2


def test_explain(space: Workspace):
    assert "Ordinals that pods must not have." in space.kubectl("explain", "asts.spec.reserveOrdinals")
    said = space.refused("explain", "asts.spec.reserveOrdinals", "--api-version=apps.kruise.io/v1alpha1")
    assert 'field "reserveOrdinals" does not exist' in said
    assert "never changes" in space.kubectl("explain", "persistentpodstates.spec.targetRef").lower()


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
            "must be StatefulSet or in PPS_Watch_Custom_Workload_WhiteList",
            id="no StatefulSet",
        ),
        pytest.param({"requiredPersistentTopology": None}, "cannot be empty at the same time", id="nothing"),
    ],
)
def test_refusals_of_states(space: Workspace, version: str, spec: Json, message: str):
    said = space.refuses(state(version=version, **spec))
    assert message in said
    assert "vpersistentpodstate.kb.io" in said


def test_only_the_newer_version_of_a_state_is_strict(space: Workspace):
    spec = {"persistentPodStateRetentionPolicy": "Never"}
    assert 'Unsupported value: "Never"' in space.refuses(state(**spec))
    space.apply(state(version="v1alpha1", **spec))


def test_a_workload_has_one_state(space: Workspace):
    space.apply(state())
    assert "conflict with other PersistentPodState web" in space.refuses(state("second"))
    said = patched(space, "persistentpodstate", {"spec": {"targetRef": {"name": "db"}}})
    assert "spec.targetRef: Forbidden: targetRef is immutable" in said


def test_states_in_both_versions(space: Workspace):
    terms = [{"weight": 100, "preference": {"nodeTopologyKeys": ["zone", "rack"]}}]
    space.apply(state(version="v1alpha1", preferredPersistentTopology=terms))
    spec = space.read("persistentpodstate", "web")["spec"]
    assert spec["requiredPersistentTopology"] == {"keys": ["kubernetes.io/hostname"]}
    assert spec["preferredPersistentTopology"] == [{"weight": 100, "preference": {"keys": ["zone", "rack"]}}]
    assert old(space, "persistentpodstates")["spec"]["preferredPersistentTopology"] == terms
    header, _ = space.kubectl("get", "persistentpodstates").splitlines()
    assert header.split() == ["NAME", "AGE"]
