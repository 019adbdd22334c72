"""Validation of PodProbeMarkers: each line of podprobemarker.md §3 is a row."""

from typing import Any

import pytest

from flotilla_common.api.admission.review import Request
from flotilla_common.api.kinds.podprobemarker.validation import validate
from flotilla_webhook.kinds import kind_handlers
from tests.testkit.admission import tools
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json

EXEC: Json = {"exec": {"command": ["sh", "-c", "exit 0"]}}
HTTP: Json = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}}
PATH = "/validate-apps-kruise-io-podprobemarker"


def http(**changed: Any) -> Json:
    return {"httpGet": HTTP["httpGet"] | changed}


def probe(how: Json | None = None, **changed: Any) -> Json:
    one = {"name": "idle", "containerName": "game", "probe": EXEC if how is None else how}
    return one | {"podConditionType": "game.io/idle"} | changed


def policy(state: str = "Succeeded", **marks: Any) -> Json:
    return {"state": state} | (marks or {"labels": {"idle": "yes"}})


def marker(*probes: Json, selector: Json | None = None) -> Json:
    spec = {"selector": {"matchLabels": {"app": "game"}} if selector is None else selector, "probes": list(probes)}
    return {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "PodProbeMarker", "metadata": {"name": "m"}, "spec": spec}


def texts(document: Json, old: Json | None = None) -> list[str]:
    return [str(fault) for fault in validate(document, old)]


GOOD = [
    pytest.param(probe(), id="exec"),
    pytest.param(probe(HTTP), id="27: scheme HTTP"),
    pytest.param(probe(http(scheme="HTTPS", port="web")), id="a port by name"),
    pytest.param(probe({"tcpSocket": {"port": 6379}}), id="tcp"),
    pytest.param(probe(http(httpHeaders=[{"name": "X-Hosted", "value": "a"}])), id="a header"),
    pytest.param(probe(podConditionType="", markerPolicy=[policy()]), id="marks alone"),
    pytest.param(probe(markerPolicy=[policy(), policy("Failed", annotations={"A.io/b": "5"})]), id="both states"),
    pytest.param(probe(podConditionType="Ready"), id="the type of a native condition"),
    pytest.param(probe(EXEC | {"periodSeconds": 0, "timeoutSeconds": 0}), id="zeros"),
]


@pytest.mark.parametrize("one", GOOD)
def test_admitted(one: Json):
    assert texts(marker(one)) == []


BAD = [
    pytest.param(probe(name="a#b"), "spec.probes: Invalid value", "'#'", id="28: a name with #"),
    pytest.param(probe(name=""), "spec.probes: Invalid value", "name can't be empty", id="no name"),
    pytest.param(probe(containerName=""), "spec.probes: Invalid value", "containerName", id="no container"),
    pytest.param(probe(name="Ready"), "spec.probes: Invalid value", "Ready", id="28: a reserved name"),
    pytest.param(
        probe(EXEC | HTTP), "spec.probe.httpGet: Forbidden", "may not specify more than 1 handler type", id="two"
    ),
    pytest.param(
        probe(EXEC | {"grpc": {"port": 1}}), "spec.probe.grpc: Forbidden", "more than 1 handler", id="exec and grpc"
    ),
    pytest.param(probe({}), "spec.probe: Required value", "must specify a handler type", id="no handler"),
    pytest.param(
        probe({"grpc": {"port": 1}}), "spec.probe: Required value", "must specify a handler type", id="grpc alone"
    ),
    pytest.param(probe({"exec": {}}), "spec.probe.exec.command: Required value", "", id="no command"),
    pytest.param(
        probe({"tcpSocket": {"port": 1, "host": "10.0.0.1"}}),
        "spec.probe.tcpSocket.host: Invalid value",
        "host field in probes is not allowed",
        id="tcp to a host",
    ),
    pytest.param(
        probe(http(host="metadata")),
        "spec.probe.httpGet.host: Invalid value",
        "host field in probes is not allowed",
        id="http to a host",
    ),
    pytest.param(probe({"tcpSocket": {"port": 0}}), "spec.probe.tcpSocket.port: Invalid value", "65535", id="port 0"),
    pytest.param(probe(http(port=65536)), "spec.probe.httpGet.port: Invalid value", "65535", id="port 65536"),
    pytest.param(probe(http(port="a--b")), "spec.probe.httpGet.port: Invalid value", "hyphens", id="no port name"),
    pytest.param(probe(http(port="80")), "spec.probe.httpGet.port: Invalid value", "letter", id="a number as name"),
    pytest.param(probe(http(path="")), "spec.probe.httpGet.path: Required value", "", id="no path"),
    pytest.param(probe(http(path="/%zz")), "spec.probe.httpGet.path: Invalid value", "escape", id="a bad path"),
    pytest.param(
        probe({"httpGet": {"path": "/", "port": 1}}),
        'spec.probe.httpGet.scheme: Unsupported value: ""',
        '"HTTP", "HTTPS"',
        id="27: no scheme",
    ),
    pytest.param(probe(http(scheme="http")), 'spec.probe.httpGet.scheme: Unsupported value: "http"', "", id="27: http"),
    pytest.param(
        probe(http(httpHeaders=[{"name": "a b", "value": ""}])),
        "spec.probe.httpGet.httpHeaders: Invalid value",
        "HTTP header",
        id="a bad header",
    ),
    pytest.param(
        probe(http(httpHeaders=[{"name": "hOsT", "value": "other"}])),
        "spec.probe.httpGet.httpHeaders: Invalid value",
        "host header in probes is not allowed",
        id="a Host header",
    ),
    pytest.param(
        probe(http(httpHeaders=[{"name": "a", "value": "b\r\nHost: c"}])),
        "spec.probe.httpGet.httpHeaders: Invalid value",
        "control characters",
        id="a header within a header",
    ),
    pytest.param(
        probe(EXEC | {"periodSeconds": -1}), "spec.probe.periodSeconds: Invalid value: -1", "", id="a negative number"
    ),
    pytest.param(probe(podConditionType=""), "spec.probes: Invalid value", "cannot be empty", id="no result"),
    pytest.param(probe(podConditionType="a/b/c"), 'spec: Invalid value: "a/b/c"', "", id="no qualified name"),
    pytest.param(
        probe(markerPolicy=[policy(), policy()]), "spec.markerPolicy: Invalid value", "state", id="a state twice"
    ),
    pytest.param(
        probe(markerPolicy=[policy("Unknown")]), "spec.markerPolicy.state: Required value", "", id="another state"
    ),
    pytest.param(
        probe(markerPolicy=[policy(labels={})]), "spec.markerPolicy: Required value", "both empty", id="no marks"
    ),
    pytest.param(
        probe(markerPolicy=[policy(labels={"a": "b c"})]),
        "spec.markerPolicy.labels: Invalid value",
        "label value",
        id="a bad label",
    ),
    pytest.param(
        probe(markerPolicy=[policy(annotations={"a b": ""})]),
        "spec.markerPolicy.annotations: Invalid value",
        "",
        id="a bad annotation",
    ),
    pytest.param(
        probe(markerPolicy=[policy(annotations={"a": "x" * (256 << 10)})]),
        "spec.markerPolicy.annotations: Too long",
        "",
        id="a large annotation",
    ),
]


@pytest.mark.parametrize(("one", "beginning", "detail"), BAD)
def test_refused(one: Json, beginning: str, detail: str):
    (fault,) = texts(marker(one))
    assert fault.startswith(beginning)
    assert detail in fault


@pytest.mark.parametrize(
    ("selector", "detail"),
    [
        ({}, "empty selector is not valid for podProbeMarker."),
        ({"matchLabels": {}, "matchExpressions": []}, "empty selector is not valid for podProbeMarker."),
        ({"matchExpressions": [{"key": "a", "operator": "Near"}]}, "not a valid label selector operator"),
    ],
)
def test_selectors(selector: Json, detail: str):
    (fault,) = texts(marker(probe(), selector=selector))
    assert fault.startswith("spec.selector: Invalid value")
    assert detail in fault


@pytest.mark.parametrize(
    ("probes", "ending"),
    [
        ([], "spec.probes: Invalid value"),
        ([probe(), probe(podConditionType="b")], "duplicated probe name"),
        ([probe(), probe(name="b")], "duplicated podConditionType"),
    ],
)
def test_what_is_there_once(probes: list[Json], ending: str):
    (fault,) = texts(marker(*probes))
    assert ending in fault


def test_some_faults_end_the_validation():
    first, second = probe(name="a#b"), probe({}, name="b")
    assert len(texts(marker(first, second))) == 1
    assert len(texts(marker(probe({}), probe({}, name="b", podConditionType="b")))) == 2


def test_the_selector_never_changes():
    old = marker(probe())
    other = marker(probe(), selector={"matchLabels": {"app": "other"}})
    assert texts(other, old) == ['selector: Invalid value: {"matchLabels":{"app":"other"}}: selector must be immutable']
    same = marker(probe(), selector={"matchLabels": {"app": "game"}, "matchExpressions": []})
    assert texts(same, old) == []


async def asked(document: Json, gates: str = "", **request: Any) -> tuple[int, str]:
    handler = kind_handlers(tools(FakeApi(), gates))[PATH]
    answer = await handler(Request(uid="u", operation="CREATE", object=document, **request))
    return answer.code, answer.message


async def test_without_gates():
    for gate in ("PodProbeMarkerGate", "KruiseDaemon"):
        code, message = await asked(marker(probe()), f"{gate}=false")
        assert (code, message) == (403, "feature-gate PodProbeMarkerGate is not enabled")


async def test_faults_are_answered_with_400():
    code, message = await asked(marker(probe(http(scheme="http"))))
    assert (code, message.startswith("spec.probe.httpGet.scheme: Unsupported value")) == (400, True)


async def test_what_is_stored_is_not_judged_again():
    stored = marker(probe(http(host="x")))
    handler = kind_handlers(tools(FakeApi(), ""))[PATH]
    update = Request(uid="u", operation="UPDATE", object=stored, old_object=stored)
    assert (await handler(update)).allowed
