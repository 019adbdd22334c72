"""DaemonSets as kubectl writes and reads them, none of them for any node (daemonset.md §1 to §3).

Covers the words of refusals, both versions, columns, and explain.
"""

from typing import Any

from tests.support.daemons import NAME, daemonset
from tests.support.workspace import Workspace
from tests.testkit.documents import Json

NOWHERE: Json = {"nodeSelector": {"nobody": "has-it"}}
PROGRESSIVE = "daemonset.kruise.io/progressive-create-pod"


def idle(strategy: Json | None = None, *, pod: Json | None = None, version: str = "v1beta1", **spec: Any) -> Json:
    """Return a DaemonSet without pods."""
    return daemonset(strategy, pod=NOWHERE | (pod or {}), version=version, **spec)


def test_refusals(space: Workspace):
    """The webhook puts several faults into one message; pods are judged by the apiserver, types by our schema."""
    said = space.refuses(idle({"rollingUpdateType": "Other"}, selector={}, minReadySeconds=-1))
    assert 'admission webhook "vdaemonset.kb.io" denied the request: [spec.selector: Invalid value: {}' in said
    assert 'rollingUpdate.rollingUpdate.type: Unsupported value: "Other"' in said
    said = space.refuses(idle(version="v1alpha1", pod={"containers": [{"name": "nginx"}]}))
    assert "containers[0].image: Required value" in said
    assert "Expected `bool" in space.refuses(idle({"paused": "yes"}, version="v1alpha1"))
    space.apply(idle())
    body = {"spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}}
    said = space.refuses_patch("ads", NAME, body)
    assert "spec: Forbidden: updates to daemonset spec for fields other than template, updateStrategy" in said


def test_one_set_in_both_versions(space: Workspace):
    """The older version has a word for surging and an annotation for progressive creation."""

    def old() -> Json:
        return space.read("daemonsets.v1alpha1.apps.kruise.io", NAME)

    document = idle({"rollingUpdateType": "Surging"}, version="v1alpha1")
    document["metadata"]["annotations"] = {PROGRESSIVE: "true"}
    first = space.apply(document)
    assert first["spec"]["template"] == document["spec"]["template"], "it is stored as it was sent"
    new = space.read("ads", NAME)
    for shown in (new, old()):
        rolling = shown["spec"]["updateStrategy"]["rollingUpdate"]
        assert rolling == {"rollingUpdateType": "Standard", "maxSurge": 1, "maxUnavailable": 0}
    assert new["spec"]["scaleStrategy"] == {"partitionedScaling": True}
    assert "scaleStrategy" not in old()["spec"]
    assert space.apply(document)["metadata"]["generation"] == first["metadata"]["generation"] == 1
    assert space.settled(NAME, desiredNumberScheduled=0)["updateRevision"] == old()["status"]["daemonSetHash"]
    assert "Unsupported value" in space.refuses(idle({"rollingUpdateType": "Surging"}))


def test_what_kubectl_prints(space: Workspace):
    """Names, columns, and the descriptions of fields; a DaemonSet has no scale, and is not protected from deletion."""
    document = idle()
    document["metadata"]["labels"] = {"policy.kruise.io/delete-protection": "Always"}
    space.apply(document)
    space.settled(NAME, desiredNumberScheduled=0)
    for word in ("ads", "daemon"):
        header, row = space.kubectl("get", word, "-o", "wide").splitlines()
        assert header.split()[:7] == ["NAME", "DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
        assert header.split()[7:] == ["CONTAINERS", "IMAGES"]
        assert row.split()[:5] == [NAME, "0", "0", "0", "0"]
        assert row.split()[-2:] == ["nginx", "nginx:alpine"]
    assert "NotFound" in space.refused("scale", "ads", NAME, "--replicas=2")
    assert "nodes whose pods are updated" in space.kubectl("explain", "ads.spec.updateStrategy.rollingUpdate.selector")
    said = space.refused("explain", "ads.spec.scaleStrategy", "--api-version=apps.kruise.io/v1alpha1")
    assert 'field "scaleStrategy" does not exist' in said
    assert "deleted" in space.kubectl("delete", "ads", NAME)
    space.until(lambda: space.clone(NAME) == {})
