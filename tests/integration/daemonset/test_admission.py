"""DaemonSets as kubectl writes and reads them, none of them for any node (daemonset.md §1 to §3).

Covers the words of refusals, both versions, columns, and explain.
"""

from typing import Any

import pytest

from tests.support.daemons import NAME, daemonset
from tests.support.workspace import Workspace
from tests.testkit.documents import Json

NOWHERE: Json = {"nodeSelector": {"nobody": "has-it"}}
PROGRESSIVE = "daemonset.kruise.io/progressive-create-pod"


def idle(strategy: Json | None = None, *, pod: Json | None = None, version: str = "v1beta1", **spec: Any) -> Json:
    """Return a DaemonSet without pods."""
    return daemonset(strategy, pod=NOWHERE | (pod or {}), version=version, **spec)


def old(space: Workspace) -> Json:
    """Return the object in the older version."""
    return space.read("daemonsets.v1alpha1.apps.kruise.io", NAME)


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_refusals(space: Workspace, version: str):
    rows: list[tuple[Json, str]] = [
        (
            idle({"maxUnavailable": "0%", "maxSurge": 0}, version=version),
            "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
        ),
        (idle({"partition": "101%"}, version=version), "must not be greater than 100%"),
        (idle(version=version, pod={"containers": [{"name": "nginx"}]}), "containers[0].image: Required value"),
        (idle(version=version, pod={"restartPolicy": "Never"}), 'restartPolicy: Unsupported value: "Never"'),
        (idle(version=version, lifecycle={"inPlaceUpdate": {}}), "spec.lifecycle.inPlaceUpdate: Forbidden"),
        (idle({"paused": "yes"}, version=version), "Expected `bool"),
    ]
    for document, message in rows:
        assert message in space.refuses(document)


def test_several_faults_are_one_message(space: Workspace):
    said = space.refuses(idle({"rollingUpdateType": "Other"}, selector={}, minReadySeconds=-1))
    assert 'admission webhook "vdaemonset.kb.io" denied the request: [spec.selector: Invalid value: {}' in said
    assert 'rollingUpdate.rollingUpdate.type: Unsupported value: "Other"' in said


def test_what_never_changes(space: Workspace):
    space.apply(idle())
    body = {"spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}}
    said = space.refuses_patch("ads", NAME, body)
    assert "spec: Forbidden: updates to daemonset spec for fields other than template, updateStrategy" in said


def test_the_old_word_for_surging(space: Workspace):
    space.apply(idle({"rollingUpdateType": "Surging"}, version="v1alpha1"))
    for shown in (space.read("ads", NAME), old(space)):
        rolling = shown["spec"]["updateStrategy"]["rollingUpdate"]
        assert rolling == {"rollingUpdateType": "Standard", "maxSurge": 1, "maxUnavailable": 0}
    assert "Unsupported value" in space.refuses(idle({"rollingUpdateType": "Surging"}))


def test_progressive_creation_in_both_versions(space: Workspace):
    document = idle(version="v1alpha1")
    document["metadata"]["annotations"] = {PROGRESSIVE: "true"}
    space.apply(document)
    assert space.read("ads", NAME)["spec"]["scaleStrategy"] == {"partitionedScaling": True}
    assert "scaleStrategy" not in old(space)["spec"]


def test_the_template_is_stored_as_it_was_sent(space: Workspace):
    first = space.apply(idle())
    assert first["spec"]["template"] == idle()["spec"]["template"]
    assert (first["spec"]["burstReplicas"], first["spec"]["revisionHistoryLimit"]) == (250, 10)
    again = space.apply(idle())
    assert first["metadata"]["generation"] == again["metadata"]["generation"] == 1
    assert space.settled(NAME, desiredNumberScheduled=0)["updateRevision"] == old(space)["status"]["daemonSetHash"]


def test_names_and_columns(space: Workspace):
    space.apply(idle())
    space.settled(NAME, desiredNumberScheduled=0)
    for word in ("ads", "daemon"):
        header, row = space.kubectl("get", word, "-o", "wide").splitlines()
        assert header.split()[:7] == ["NAME", "DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
        assert header.split()[7:] == ["CONTAINERS", "IMAGES"]
        assert row.split()[:5] == [NAME, "0", "0", "0", "0"]
        assert row.split()[-2:] == ["nginx", "nginx:alpine"]
    assert "NotFound" in space.refused("scale", "ads", NAME, "--replicas=2")


def test_explain(space: Workspace):
    assert "nodes whose pods are updated" in space.kubectl("explain", "ads.spec.updateStrategy.rollingUpdate.selector")
    said = space.refused("explain", "ads.spec.scaleStrategy", "--api-version=apps.kruise.io/v1alpha1")
    assert 'field "scaleStrategy" does not exist' in said


def test_it_is_not_protected_from_deletion(space: Workspace):
    document = idle()
    document["metadata"]["labels"] = {"policy.kruise.io/delete-protection": "Always"}
    space.apply(document)
    assert "deleted" in space.kubectl("delete", "ads", NAME)
    space.until(lambda: space.clone(NAME) == {})
