"""`flotilla tail`: messages become lines, filters pick them."""

import json
from datetime import UTC, datetime
from typing import Any

import click
import pytest

from flotilla_cli.tail import row
from flotilla_cli.traffic.filters import matches
from flotilla_cli.traffic.lines import Line, Reader
from flotilla_common.api.changes import changed_paths
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_common.installed import published

NOW = datetime(2026, 5, 4, 12, 0, 0, 123000, tzinfo=UTC)
POD_BODY: dict[str, Any] = {
    "metadata": {
        "name": "web-a.b",
        "namespace": "shop",
        "resourceVersion": "5",
        "ownerReferences": [{"kind": "CloneSet", "name": "web", "controller": True}],
    },
    "spec": {"containers": [{"name": "main", "image": "web:1"}]},
}
ACT: dict[str, Any] = {
    "service": "cloneset",
    "action": "patch",
    "subresource": "status",
    "kind": "Pod",
    "namespace": "shop",
    "name": "web-a",
    "owner": {"kind": "CloneSet", "namespace": "shop", "name": "web"},
    "cause": "in-place update to web-new",
    "outcome": "Ok",
    "message": "",
    "latencyMs": 3.2,
}
WHY: dict[str, Any] = {
    "service": "cloneset",
    "kind": "CloneSet",
    "namespace": "shop",
    "name": "web",
    "reasons": [{"message": "waiting: one"}, {"message": "waiting: two"}],
    "actions": {"create": 0, "patch": 2},
}


def kube(body: dict[str, Any], operation: str = "MODIFIED", version: str = "6") -> Message:
    return Message(
        subject=subjects.kube(POD, "shop", "web-a.b"),
        data=json.dumps(body).encode(),
        headers={"op": operation, "rv": version},
    )


def read(message: Message) -> Line:
    line = Reader().read(message, NOW)
    assert line is not None
    return line


def said(subject: str, body: dict[str, Any]) -> Line:
    return read(Message(subject=subject, data=json.dumps(body).encode()))


def act(**changes: Any) -> Line:
    return said(subjects.act("cloneset", POD, "shop", "web-a"), ACT | changes)


def test_change_is_named_by_the_object_not_by_the_subject():
    line = read(kube(POD_BODY, "ADDED"))
    assert (line.stream, line.service, line.kind, line.namespace, line.name) == (
        "kube",
        "watcher",
        "Pod",
        "shop",
        "web-a.b",
    )
    assert (line.what, line.outcome, line.owner) == ("added", "rv 6", "CloneSet/web")


def test_change_tells_what_changed_since_the_last_one():
    reader = Reader()
    reader.read(kube(POD_BODY), NOW)
    after = POD_BODY | {"spec": {"containers": [{"name": "main", "image": "web:2"}]}}
    line = reader.read(kube(after), NOW)
    assert line is not None
    assert line.cause == "spec.containers[main].image"


def test_the_owner_of_what_is_gone_is_known_from_before():
    reader = Reader()
    reader.read(kube(POD_BODY), NOW)
    gone = kube({"metadata": {"name": "web-a.b", "namespace": "shop", "resourceVersion": "7"}}, "DELETED")
    first, again = reader.read(gone, NOW), reader.read(gone, NOW)
    assert first is not None
    assert again is not None
    assert (first.what, first.owner) == ("deleted", "CloneSet/web")
    assert again.owner == ""  # what is gone is not kept in memory


def test_cluster_scoped_object():
    message = Message(
        subject=subjects.kube(NODE, "", "n1"), data=b'{"metadata":{"name":"n1"}}', headers={"op": "ADDED"}
    )
    line = read(message)
    assert (line.kind, line.namespace, line.name) == ("Node", "", "n1")


@pytest.mark.parametrize("resource", published(), ids=lambda resource: resource.plural)
def test_objects_of_a_list_have_a_kind(resource: Resource):
    subject = subjects.kube(resource, "shop" if resource.namespaced else "", "x")
    assert read(Message(subject=subject, data=b"{}", headers={"op": "ADDED"})).kind == resource.kind


def test_a_resource_that_nobody_knows_is_named_by_its_plural():
    stranger = Resource("example.com", "v1", "widgets", "Widget")
    subject = subjects.kube(stranger, "shop", "x")
    assert read(Message(subject=subject, data=b"{}", headers={"op": "ADDED"})).kind == "widgets"


def test_write():
    line = act()
    assert (line.service, line.what, line.cause) == ("cloneset", "patch status", "in-place update to web-new")
    assert (line.outcome, line.owner) == ("Ok 3.2ms", "CloneSet/web")


def test_failed_write_says_why():
    assert act(outcome="Denied", message="exceeded quota").outcome == "Denied 3.2ms: exceeded quota"


def test_plan():
    line = said(subjects.why(CLONE_SET, "shop", "web"), WHY)
    assert (line.what, line.cause, line.outcome) == ("plan", "waiting: one; waiting: two", "2 patch")


def test_plan_with_errors_and_without_reasons():
    line = said(subjects.why(CLONE_SET, "shop", "web"), WHY | {"reasons": [], "errors": [{"message": "no"}]})
    assert (line.cause, line.outcome) == ("nothing to wait for", "no")


def test_heartbeat():
    line = said(subjects.heartbeat("cloneset", "r1"), {"service": "cloneset", "replica": "r1", "shards": [0], "lag": 0})
    assert (line.stream, line.name, line.cause) == ("heartbeat", "r1", "shards=[0]")


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(Message(subject=subjects.kube_marker(POD), data=b'{"epoch":"e"}'), id="marker"),
        pytest.param(Message(subject=subjects.kube(POD, "a", "b"), data=b""), id="expired tombstone"),
        pytest.param(Message(subject="act.v1.x", data=b"no json"), id="unreadable"),
        pytest.param(Message(subject="else", data=b"{}"), id="other subject"),
    ],
)
def test_messages_without_a_line(message: Message):
    assert Reader().read(message, NOW) is None


def test_row_has_all_columns():
    text = click.unstyle(row(act()))
    assert text.split(maxsplit=1)[1] == (
        "cloneset   Pod shop/web-a                                patch status      "
        "in-place update to web-new  → Ok 3.2ms"
    )
    assert text[12:14] == "  "
    assert text.startswith(f"{NOW.astimezone():%H:%M:%S}.123")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        pytest.param("", True, id="everything"),
        pytest.param("web-a", True, id="name"),
        pytest.param("web-*", True, id="glob"),
        pytest.param("pod", True, id="kind"),
        pytest.param("pods", True, id="plural"),
        pytest.param("Pod/web-a", True, id="kind and name"),
        pytest.param("shop", True, id="namespace"),
        pytest.param("shop/*", True, id="all of a namespace"),
        pytest.param("pod/shop/web-a", True, id="kind, namespace and name"),
        pytest.param("web", True, id="owner"),
        pytest.param("cloneset/web", True, id="owner with its kind"),
        pytest.param("shop/web", True, id="owner with its namespace"),
        pytest.param("web-b", False, id="another name"),
        pytest.param("node", False, id="another kind"),
        pytest.param("team", False, id="another namespace"),
    ],
)
def test_filters(pattern: str, expected: bool):
    assert matches(act(), pattern) is expected


@pytest.mark.parametrize(
    ("before", "after", "paths"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="same"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 2}}, ["a.b"], id="nested"),
        pytest.param({"a": 1}, {"b": 1}, ["b", "a"], id="added and removed"),
        pytest.param({"a": [1, 2]}, {"a": [1, 3]}, ["a"], id="list of values"),
        pytest.param(
            {"c": [{"name": "x", "v": 1}, {"name": "y", "v": 1}]},
            {"c": [{"name": "x", "v": 1}, {"name": "y", "v": 2}]},
            ["c[y].v"],
            id="list of named items",
        ),
        pytest.param(
            {"metadata": {"resourceVersion": "1", "labels": {}}},
            {"metadata": {"resourceVersion": "2", "labels": {"a": "b"}}},
            ["metadata.labels.a"],
            id="versions are noise",
        ),
        pytest.param(
            {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "x"}]},
            {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "y"}]},
            ["conditions[Ready]"],
            id="a condition counts as one",
        ),
    ],
)
def test_changed_paths(before: dict[str, Any], after: dict[str, Any], paths: list[str]):
    assert changed_paths(before, after) == paths
