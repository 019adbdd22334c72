"""The parts of an object that go to each node."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.containerrecreaterequest.kind import node_of as node_of_request
from flotilla_common.api.kinds.kind import Copy
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE
from flotilla_watcher.routes import node_of_pod, routes, trimmed_pod
from tests.testkit import pods as pods_of
from tests.testkit.documents import conditions
from tests.testkit.pods import container, container_status

OWNER = [{"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "web", "uid": "u", "controller": True}]
LABEL = {"fieldRef": {"fieldPath": "metadata.labels['conf']"}}
NAME = {"fieldRef": {"fieldPath": "metadata.name"}}


def a_pod(**changes: Any) -> dict[str, Any]:
    values = {"CONF": {"valueFrom": LABEL}, "ME": {"valueFrom": NAME}, "PASSWORD": {"value": "secret"}}
    env = [{"name": name} | value for name, value in values.items()]
    document = pods_of.pod(
        "web-0",
        uid="u1",
        version=7,
        labels={"conf": "v1", "app": "web"},
        annotations={"big": "x" * 1000, "apps.kruise.io/runtime-containers-meta": "{}"},
        ownerReferences=OWNER,
        node="node-1",
        containers=[container("app", "nginx:1", env=env, resources={"limits": {"cpu": "1"}})],
        phase="Running",
        conditions=conditions({"Ready": True, "InPlaceUpdateReady": True}),
        statuses=[container_status("app", image_id="i", containerID="containerd://1", restartCount=2, ready=True)],
    )
    for path, value in changes.items():
        target: Any = document
        *parents, last = path.split("__")
        for name in parents:
            target = target[name]
        target[last] = value
    return document


def copied(document: dict[str, Any]) -> Copy:
    return trimmed_pod(msgspec.json.encode(document))


def test_a_node_gets_no_more_of_a_pod_than_its_agent_reads() -> None:
    assert msgspec.json.decode(copied(a_pod()).body) == {
        "metadata": {
            "name": "web-0",
            "namespace": "default",
            "uid": "u1",
            "resourceVersion": "7",
            "labels": {"conf": "v1"},
            "annotations": {"apps.kruise.io/runtime-containers-meta": "{}"},
        },
        "spec": {
            "nodeName": "node-1",
            "containers": [{"name": "app", "image": "nginx:1", "env": [{"name": "CONF", "valueFrom": LABEL}]}],
        },
        "status": {
            "conditions": [{"type": "InPlaceUpdateReady", "status": "True"}],
            "containerStatuses": [{"name": "app", "containerID": "containerd://1", "restartCount": 2}],
        },
    }


@pytest.mark.parametrize(
    ("changes", "goes"),
    [
        pytest.param({}, True, id="ours"),
        pytest.param({"spec__nodeName": ""}, False, id="on no node yet"),
        pytest.param({"status__phase": "Succeeded"}, False, id="finished"),
        pytest.param({"metadata__ownerReferences": []}, False, id="nobody's"),
        pytest.param(
            {"metadata__ownerReferences": [{**OWNER[0], "apiVersion": "apps/v1"}]}, False, id="a ReplicaSet's"
        ),
        pytest.param(
            {"metadata__ownerReferences": [], "metadata__annotations": {"kruise.io/sidecarset-hash": "{}"}},
            True,
            id="with sidecars",
        ),
        pytest.param({"metadata__deletionTimestamp": "2026-01-01T00:00:00Z"}, True, id="being deleted"),
    ],
)
def test_which_pods_concern_a_node(changes: dict[str, Any], goes: bool) -> None:
    assert node_of_pod(msgspec.json.encode(a_pod(**changes))) == ("node-1" if goes else "")


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        pytest.param({"metadata__resourceVersion": "8"}, True, id="only the version"),
        pytest.param({"metadata__labels": {"conf": "v1", "app": "other"}}, True, id="a label that nobody reads"),
        pytest.param({"metadata__labels": {"conf": "v2"}}, False, id="a label that an environment reads"),
        pytest.param({"status__containerStatuses": []}, False, id="containers"),
    ],
)
def test_a_copy_that_says_the_same_is_known_by_its_digest(changes: dict[str, Any], same: bool) -> None:
    before, after = copied(a_pod()), copied(a_pod(**changes))
    assert (before.digest == after.digest) is same


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ({"crr.apps.kruise.io/node-name": "n1", "crr.apps.kruise.io/active": "true"}, "n1"),
        ({"crr.apps.kruise.io/node-name": "n1", "crr.apps.kruise.io/active": "false"}, "n1"),
        ({"crr.apps.kruise.io/node-name": "n1"}, ""),
        ({"crr.apps.kruise.io/active": "true"}, ""),
    ],
    ids=["active", "any value", "not active", "not admitted"],
)
def test_requests_while_they_are_active(labels: dict[str, str], node: str) -> None:
    assert node_of_request(msgspec.json.encode({"metadata": {"name": "r", "labels": labels}})) == node


def test_a_node_image_has_the_name_of_its_node() -> None:
    body = b'{"metadata":{"name":"n.example"},"spec":{"images":{}}}'
    route = routes()[NODE_IMAGE]
    assert route.node(body) == "n.example"
    assert route.copy(body).body == body


def test_what_cannot_be_read_is_said() -> None:
    for route in routes().values():
        with pytest.raises(msgspec.DecodeError):
            route.node(b'{"metadata":7}')
        with pytest.raises(msgspec.DecodeError):
            route.copy(b'{"metadata":7}')
