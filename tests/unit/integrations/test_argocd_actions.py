"""Argo CD's actions on objects of each kind, and the patches that it sends, in both versions."""

import re
from typing import Any

import pytest

from flotilla_common.api.kinds.catalogue import KINDS
from integrations.lua.scripts import SCRIPTS
from tests.support import lua as scripts
from tests.support.lua import Lua
from tests.testkit.documents import Json

LUA = Lua()
ALPHA, BETA = "apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"
NOW = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def found(kind: str, version: str = BETA, status: Json | None = None, **spec: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": spec, "status": status or {}}


def offered(document: Json) -> set[str]:
    return {name for name, disabled in scripts.disabled_actions(LUA, document).items() if not disabled}


def rolling(**fields: Any) -> Json:
    return {"type": "RollingUpdate", "rollingUpdate": fields}


ROWS: list[tuple[Json, set[str]]] = [
    (found("CloneSet"), {"pause", "restart"}),
    (found("CloneSet", updateStrategy=rolling(paused=True, partition="50%")), {"resume", "promote", "restart"}),
    (found("CloneSet", updateStrategy=rolling(partition="0%")), {"pause", "restart"}),
    (found("CloneSet", ALPHA, updateStrategy={"paused": True, "partition": 1}), {"resume", "promote", "restart"}),
    (found("CloneSet", updateStrategy={"type": "OnDelete"}), {"restart"}),
    (found("StatefulSet", updateStrategy=rolling(partition=1)), {"pause", "promote", "restart"}),
    (found("StatefulSet", ALPHA, updateStrategy=rolling(paused=True)), {"resume", "restart"}),
    (found("DaemonSet", updateStrategy=rolling(partition="30%")), {"pause", "promote", "restart"}),
    (found("SidecarSet", updateStrategy={"paused": True, "partition": 3}), {"resume", "promote"}),
    (found("SidecarSet", updateStrategy={"type": "NotUpdate"}), set()),
    (found("UnitedDeployment", template={"cloneSetTemplate": {}}), {"restart"}),
    (found("UnitedDeployment", updateStrategy={"manualUpdate": {"partitions": {"a": 0, "b": 1}}}), {"promote"}),
    (found("BroadcastJob"), {"pause"}),
    (found("BroadcastJob", paused=True), {"resume"}),
    (found("BroadcastJob", paused=True, status={"phase": "completed"}), set()),
    (found("AdvancedCronJob", paused=True), {"resume"}),
    (found("EphemeralJob", ALPHA), {"pause"}),
    (found("EphemeralJob", ALPHA, status={"completionTime": "2026-01-01T00:00:00Z"}), set()),
]


@pytest.mark.parametrize(("document", "names"), ROWS)
def test_what_is_offered(document: Json, names: set[str]):
    assert offered(document) == names


def test_kinds_without_actions():
    assert {name for name, one in SCRIPTS.items() if not one.actions.disabled} == {kind.name for kind in KINDS} - {
        document["kind"] for document, _ in ROWS
    }


@pytest.mark.parametrize(
    ("document", "action", "spec"),
    [
        (found("CloneSet"), "pause", {"updateStrategy": {"rollingUpdate": {"paused": True}}}),
        (found("CloneSet", ALPHA), "pause", {"updateStrategy": {"paused": True}}),
        (found("CloneSet", ALPHA, updateStrategy={"paused": True}), "resume", {"updateStrategy": {"paused": False}}),
        (
            found("CloneSet", updateStrategy=rolling(partition="50%")),
            "promote",
            {"updateStrategy": {"rollingUpdate": {"partition": 0}}},
        ),
        (
            found("StatefulSet", ALPHA, updateStrategy=rolling(partition=4, paused=True)),
            "promote",
            {"updateStrategy": {"rollingUpdate": {"partition": 0}}},
        ),
        (found("DaemonSet"), "pause", {"updateStrategy": {"rollingUpdate": {"paused": True}}}),
        (found("SidecarSet", updateStrategy={"partition": "50%"}), "promote", {"updateStrategy": {"partition": 0}}),
        (
            found("UnitedDeployment", updateStrategy={"manualUpdate": {"partitions": {"a": 2, "b": 1}}}),
            "promote",
            {"updateStrategy": {"manualUpdate": {"partitions": {"a": 0, "b": 0}}}},
        ),
        (found("BroadcastJob"), "pause", {"paused": True}),
        (found("AdvancedCronJob", paused=True), "resume", {"paused": False}),
        (found("EphemeralJob", ALPHA), "pause", {"paused": True}),
    ],
)
def test_what_is_sent(document: Json, action: str, spec: Json):
    assert scripts.acted(LUA, document, action) == {"spec": spec}


@pytest.mark.parametrize("kind", ["CloneSet", "StatefulSet", "DaemonSet"])
def test_restart(kind: str):
    template: Json = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}
    sent = scripts.acted(LUA, found(kind, template=template), "restart")
    annotations = sent["spec"]["template"]["metadata"].pop("annotations")
    assert NOW.fullmatch(annotations["kubectl.kubernetes.io/restartedAt"])
    assert sent == {"spec": {"template": {"metadata": {}}}}


def test_restart_of_what_is_in_subsets():
    sent = scripts.acted(LUA, found("UnitedDeployment", template={"statefulSetTemplate": {"spec": {}}}), "restart")
    template = sent["spec"]["template"]["statefulSetTemplate"]["spec"]["template"]
    assert NOW.fullmatch(template["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"])
