"""StatefulSets and PersistentPodStates as kubectl writes and reads them.

Covers the words of refusals, both versions, columns, scale and explain (statefulset.md §1 to §3, persistentpodstate.md
§1 to §3).
"""

import json
from typing import Any

from tests.support.workspace import Workspace
from tests.testkit.documents import Json

IMMUTABLE = "updates to statefulset spec for fields other than replicas, template"
GATE: Json = {"readinessGates": [{"conditionType": "InPlaceUpdateReady"}]}


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


def test_refusals(space: Workspace):
    """The webhook puts several faults into one message; pods are judged by the apiserver, types by our schema.

    Some fields never change, and with InPlaceOnly templates change by their images alone.
    """
    said = space.refuses(statefulset(selector={}, podManagementPolicy="Any", reserveOrdinals=["5-3"]))
    assert 'admission webhook "vstatefulset.kb.io" denied the request: [spec.podManagementPolicy: ' in said
    assert "0 th reserve ordinal is invalid: 5-3, err = '5-3' ends before it starts" in said
    said = space.refuses(statefulset("v1alpha1", pod={"containers": [{"name": "nginx"}]}))
    assert "spec.template.spec.containers[0].image: Required value" in said
    said = space.refuses(statefulset("v1alpha1", updateStrategy={"rollingUpdate": {"partition": "50%"}}))
    assert "Expected `int`, got `str`" in said

    strategy = {"rollingUpdate": {"podUpdatePolicy": "InPlaceOnly"}}
    image = {"containers": [{"name": "nginx", "image": "nginx:mainline"}]}
    space.apply(statefulset(pod=GATE, updateStrategy=strategy))
    space.apply(statefulset(pod=GATE | image, updateStrategy=strategy))
    said = patched(space, "asts", {"spec": {"template": {"spec": {"hostNetwork": True}}}})
    assert "invalid template modified with InPlaceOnly strategy: add /hostNetwork, currently only image update" in said
    assert IMMUTABLE in patched(space, "asts", {"spec": {"serviceName": "other"}})


def test_one_set_in_both_versions(space: Workspace):
    """The same manifest changes nothing, and what the built-in kind has elsewhere is an unknown field."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    document = statefulset(
        reserveOrdinals=[1, "3-5"],
        lifecycle={"preDelete": {"labelsHandler": {"a": "b"}}},
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": claim}],
    )
    first = space.apply(document)
    assert space.apply(document)["metadata"]["generation"] == first["metadata"]["generation"] == 1
    spec = space.read("asts", "web")["spec"]
    assert (spec["podManagementPolicy"], spec["revisionHistoryLimit"]) == ("OrderedReady", 10)
    assert spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == 1
    assert spec["reserveOrdinals"] == [1, "3-5"]
    shown = old(space, "statefulsets")
    assert shown["apiVersion"] == "apps.kruise.io/v1alpha1"
    assert not {"reserveOrdinals", "lifecycle", "persistentVolumeClaimRetentionPolicy"} & shown["spec"].keys()
    assert shown["spec"]["updateStrategy"] == spec["updateStrategy"]

    space.kubectl("delete", "asts", "web")
    text = json.dumps(statefulset(minReadySeconds=5))
    assert 'unknown field "spec.minReadySeconds"' in space.refuses(text)
    space.kubectl("create", "--validate=warn", "-f", "-", stdin=text)
    assert "minReadySeconds" not in space.read("asts", "web")["spec"]


def test_columns_scale_and_explain(space: Workspace):
    space.apply(statefulset())
    header, row = space.kubectl("get", "asts").splitlines()
    assert header.split() == ["NAME", "DESIRED", "CURRENT", "UPDATED", "READY", "AGE"]
    assert row.split()[:2] == ["web", "0"]
    header, row = space.kubectl("get", "asts", "-o", "wide").splitlines()
    assert header.split()[6:] == ["CONTAINERS", "IMAGES"]
    assert row.split()[-2:] == ["nginx", "nginx:alpine"]
    assert "statefulset.apps.kruise.io/web scaled" in space.kubectl("scale", "asts", "web", "--replicas=1")
    assert space.read("asts", "web")["spec"]["replicas"] == 1
    assert "Ordinals that pods must not have." in space.kubectl("explain", "asts.spec.reserveOrdinals")
    said = space.refused("explain", "asts.spec.reserveOrdinals", "--api-version=apps.kruise.io/v1alpha1")
    assert 'field "reserveOrdinals" does not exist' in said
    assert "never changes" in space.kubectl("explain", "persistentpodstates.spec.targetRef").lower()


def test_states(space: Workspace):
    """A workload has one state, whose target never changes; only the newer version is strict."""
    said = space.refuses(state(version="v1alpha1", requiredPersistentTopology=None))
    assert "cannot be empty at the same time" in said
    assert "vpersistentpodstate.kb.io" in said
    unknown = {"persistentPodStateRetentionPolicy": "Never"}
    assert 'Unsupported value: "Never"' in space.refuses(state(**unknown))

    terms = [{"weight": 100, "preference": {"nodeTopologyKeys": ["zone", "rack"]}}]
    space.apply(state(version="v1alpha1", preferredPersistentTopology=terms, **unknown))
    spec = space.read("persistentpodstate", "web")["spec"]
    assert spec["requiredPersistentTopology"] == {"keys": ["kubernetes.io/hostname"]}
    assert spec["preferredPersistentTopology"] == [{"weight": 100, "preference": {"keys": ["zone", "rack"]}}]
    assert old(space, "persistentpodstates")["spec"]["preferredPersistentTopology"] == terms
    header, _ = space.kubectl("get", "persistentpodstates").splitlines()
    assert header.split() == ["NAME", "AGE"]

    assert "conflict with other PersistentPodState web" in space.refuses(state("second"))
    said = patched(space, "persistentpodstates.v1alpha1.apps.kruise.io", {"spec": {"targetRef": {"name": "db"}}})
    assert "spec.targetRef: Forbidden: targetRef is immutable" in said
