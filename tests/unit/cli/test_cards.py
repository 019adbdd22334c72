"""Cards: their content for objects that own no pods, and their layout."""

import pkgutil
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import msgspec
import pytest

from flotilla_cli.options import find_kind
from flotilla_cli.output import plain
from flotilla_cli.tree.render import render
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from flotilla_common.api.kinds.resourcedistribution.types import RESOURCE_DISTRIBUTION
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import Reason, State
from flotilla_insight import views
from flotilla_insight.published import Failure, Why
from flotilla_insight.tree import card
from flotilla_insight.views import all_views, sidecarset, view_of
from tests.testkit.documents import Json

METADATA = {"name": "side", "uid": "u1", "creationTimestamp": "2026-03-01T08:00:00Z"}
NOW = datetime(2026, 3, 1, 8, 2, 0, tzinfo=UTC)


def request(status: Json | None = None) -> bytes:
    metadata = {
        "name": "restart-app",
        "namespace": "shop",
        "uid": "u1",
        "creationTimestamp": "2026-03-01T08:00:00Z",
        "labels": {"crr.apps.kruise.io/node-name": "n1"},
    }
    spec = {"podName": "web-1", "containers": [{"name": "app"}, {"name": "side"}]}
    return msgspec.json.encode({"metadata": metadata, "spec": spec, "status": status or {}})


def why(*messages: str, uid: str = "u1", failure: str = "") -> Why:
    reasons = tuple(Reason(State.WAITING, "C", message) for message in messages)
    return Why(uid=uid, reasons=reasons, errors=(Failure("status", failure),) if failure else ())


def shown(raw: bytes, record: Why | None = None) -> str:
    return plain(render(card(view_of(RECREATE_REQUEST), raw, record), NOW))


def test_a_request_that_nobody_has_seen():
    assert shown(request(), why("the agent of node n1 has not taken the request up yet")) == (
        "ContainerRecreateRequest shop/restart-app  not started: pod web-1 on n1  age 2m\n"
        "├── waiting: the agent of node n1 has not taken the request up yet\n"
        "└── CONTAINER  STATE  KILLED  NEW ID  READY  MESSAGE\n"
        "    app        -      -       -       -\n"
        "    side       -      -       -       -\n"
    )


def test_a_request_under_way():
    states = [
        {"name": "app", "phase": "Recreating", "isKilled": True},
        {"name": "side", "phase": "Failed", "message": "kill container error: x"},
    ]
    snapshot = [{"name": "app", "ready": False, "containerID": "containerd://0123456789abcdef"}]
    status = {"phase": "Recreating", "containerRecreateStates": states, "containerStatusSnapshot": snapshot}
    lines = shown(request(status), why(failure="no quorum")).splitlines()
    assert lines[1] == "├── no quorum"
    assert lines[3].split() == ["app", "Recreating", "yes", "0123456789ab", "no"]
    assert lines[4].split() == ["side", "Failed", "no", "-", "-", "kill", "container", "error:", "x"]


def test_a_request_that_ended_otherwise():
    text = shown(request({"phase": "Completed", "message": "pod has gone"}), why("of a namesake", uid="u0"))
    assert text.splitlines()[:2] == [
        "ContainerRecreateRequest shop/restart-app  Completed: pod web-1 on n1, pod has gone  age 2m",
        "├── nothing to wait for",
    ]


def test_what_is_shown_is_one_json_document():
    document = msgspec.to_builtins(card(view_of(RECREATE_REQUEST), request(), None))
    assert document["columns"][0] == "CONTAINER"
    assert document["waitingFor"] == ()


def distribution(status: Json, resource: Json | None = None, **targets: Any) -> bytes:
    metadata = {"name": "login", "uid": "u1", "creationTimestamp": "2026-03-01T08:00:00Z"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "c2VjcmV0"}}
    spec = {"resource": secret if resource is None else resource, "targets": targets}
    return msgspec.json.encode({"metadata": metadata, "spec": spec, "status": status})


def drawn(raw: bytes) -> str:
    return plain(render(card(view_of(RESOURCE_DISTRIBUTION), raw, None), NOW))


def test_what_is_distributed_is_not_shown():
    conditions = [
        {"type": "CreateResourceFailed", "status": "True", "reason": "exceeded quota", "failedNamespaces": ["b", "c"]},
        {"type": "UpdateResourceFailed", "status": "False", "reason": "Succeeded"},
    ]
    status = {"desired": 4, "succeeded": 2, "failed": 2, "conditions": conditions}
    text = drawn(distribution(status, allNamespaces=True, excludedNamespaces={"list": [{"name": "d"}]}))
    assert text == (
        "ResourceDistribution login  Secret s to all namespaces but d: 2 of 4 have it  age 2m\n"
        "├── nothing to wait for\n"
        "└── FAILURE               NAMESPACES  REASON\n"
        "    CreateResourceFailed  b, c        exceeded quota\n"
    )


@pytest.mark.parametrize(
    ("targets", "told"),
    [
        ({}, "no namespaces"),
        ({"includedNamespaces": {"list": [{"name": "a"}, {"name": "b"}]}}, "namespaces a, b"),
        (
            {
                "includedNamespaces": {"list": [{"name": "a"}]},
                "namespaceSelector": {
                    "matchLabels": {"x": "y"},
                    "matchExpressions": [{"key": "z", "operator": "Exists"}],
                },
            },
            "namespaces a and namespaces with x=y,z",
        ),
    ],
)
def test_where_it_is_distributed_to(targets: Json, told: str):
    assert f"Secret s to {told}: 0 of 0 have it" in drawn(distribution({}, **targets))
    assert f"nothing that can be distributed to {told}: " in drawn(distribution({}, {}, **targets))


def test_where_pods_were():
    spec = {"targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "db"}}
    states = {
        "db-10": {"nodeName": "n2", "nodeTopologyLabels": {"kubernetes.io/hostname": "n2"}},
        "db-9": {"nodeName": "n1", "annotations": {"example.com/ip": "10.0.0.9"}},
    }
    metadata = {"name": "db", "namespace": "shop", "uid": "u1", "creationTimestamp": "2026-03-01T08:00:00Z"}
    raw = msgspec.json.encode({"metadata": metadata, "spec": spec, "status": {"podStates": states}})
    headline = "pods of StatefulSet db (apps.kruise.io/v1beta1), kept until scaled away"
    assert plain(render(card(view_of(PERSISTENT_POD_STATE), raw, why()), NOW)) == (
        f"PersistentPodState shop/db  {headline}  age 2m\n"
        "├── nothing to wait for\n"
        "└── POD    NODE  LABELS                     ANNOTATIONS\n"
        "    db-9   n1    -                          example.com/ip=10.0.0.9\n"
        "    db-10  n2    kubernetes.io/hostname=n2  -\n"
    )


SIDECARS = {
    "initContainers": [{"name": "net", "image": "n:1", "restartPolicy": "Always"}, {"name": "setup", "image": "s:1"}],
    "containers": [
        {"name": "log", "image": "l:1"},
        {"name": "mesh", "image": "m:1", "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "e"}},
    ],
}
COUNTS = {"matchedPods": 4, "updatedPods": 2, "readyPods": 3}


def test_what_is_injected():
    raw = msgspec.json.encode({"metadata": METADATA, "spec": SIDECARS, "status": COUNTS})
    assert plain(render(card(view_of(SIDECAR_SET), raw, why()), NOW)) == (
        "SidecarSet side  4 pods: 2 updated, 3 ready, 1 at a time  age 2m\n"
        "├── nothing to wait for\n"
        "└── CONTAINER  AS              IMAGE\n"
        "    net        native sidecar  n:1\n"
        "    setup      init            s:1\n"
        "    log        sidecar         l:1\n"
        "    mesh       hot upgrade     m:1, idle e\n"
    )


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param(
            {"updateStrategy": {"partition": "50%", "maxUnavailable": 0}},
            "0 at a time, 50% stay on old revisions",
            id="partition",
        ),
        pytest.param({"updateStrategy": {"paused": True, "partition": 2}}, "updates are paused", id="paused"),
        pytest.param({"updateStrategy": {"type": "NotUpdate"}}, "existing pods are not updated", id="NotUpdate"),
        pytest.param({"injectionStrategy": {"paused": True}}, "1 at a time, injection is paused", id="no injection"),
        pytest.param(
            {"injectionStrategy": {"revision": {"revisionName": "side-1", "customVersion": "a"}}},
            "1 at a time, new pods get side-1",
            id="a revision",
        ),
        pytest.param(
            {"injectionStrategy": {"revision": {"customVersion": "a"}}},
            "1 at a time, new pods get custom version a",
            id="a custom version",
        ),
    ],
)
def test_what_a_sidecar_set_may_change(spec: Json, said: str):
    raw = msgspec.json.encode({"metadata": METADATA, "spec": spec})
    assert sidecarset.sidecar_set(raw).headline == f"0 pods: 0 updated, 0 ready, {said}"


def test_a_canary_says_of_whom():
    annotations = {"apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": "mesh"}
    raw = msgspec.json.encode({"metadata": METADATA | {"annotations": annotations}})
    assert sidecarset.sidecar_set(raw).headline.endswith(", canary of mesh")


def test_a_kind_without_a_view_has_a_card_as_well():
    shown = plain(render(card(view_of(Resource("g", "v1", "things", "Thing")), request(), None), NOW))
    assert shown == "Thing shop/restart-app  age 2m\n└── nothing to wait for\n"


@pytest.mark.parametrize(("word", "service"), [("clone", "cloneset"), ("crr", "jobs"), ("nodeimage", "jobs")])
def test_who_plans_a_kind(word: str, service: str):
    assert catalogue.kind_of(find_kind(word)).service == service


def test_each_view_is_declared_once():
    modules = [import_module(f"{views.__name__}.{module.name}") for module in pkgutil.iter_modules(views.__path__)]
    found = [view for module in modules for view in getattr(module, "VIEWS", ())]
    assert all(view_of(view.resource) is view for view in found)
    assert {view.resource for view in all_views()} <= {view.resource for view in found}
