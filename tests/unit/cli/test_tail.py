"""`flotilla tail`: messages become lines, filters pick them."""

import json
from datetime import UTC, datetime
from typing import Any, cast

import click
import msgspec
import pytest
from click.testing import CliRunner

from flotilla_cli.commands.tail import row
from flotilla_cli.main import main
from flotilla_cli.options import DurationParam
from flotilla_common.api.changes import changed_paths
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.affiliation import Affiliation
from flotilla_common.bus.interface import BusError, Message, OnMessage
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.pod_shards import pod_shard
from flotilla_common.installed import published
from flotilla_insight import traffic
from flotilla_insight.traffic import Line, LineReader, matches

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
    "reasons": [{"state": "waiting", "message": "one"}, {"state": "held", "message": "two"}, {"message": "old"}],
    "actions": {"create": 0, "patch": 2},
}


def kube(body: dict[str, Any], operation: str = "MODIFIED", version: str = "6") -> Message:
    return Message(
        subject=subjects.pod("shop", "web-a.b", Affiliation("CloneSet_apps_kruise_io", "17", "-")),
        data=json.dumps(body).encode(),
        headers={"op": operation, "rv": version},
    )


def read(message: Message) -> Line:
    line = LineReader().read(message, NOW)
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
    reader = LineReader()
    reader.read(kube(POD_BODY), NOW)
    after = POD_BODY | {"spec": {"containers": [{"name": "main", "image": "web:2"}]}}
    line = reader.read(kube(after), NOW)
    assert line is not None
    assert line.cause == "spec.containers[main].image"


def test_the_owner_of_what_is_gone_is_known_from_before():
    reader = LineReader()
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
    assert (line.what, line.cause, line.outcome) == ("plan", "waiting: one; two; old", "2 patch")


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
        pytest.param(Message(subject="kube.v1.core.pods.a.b.-.-.-", data=b""), id="expired tombstone"),
        pytest.param(Message(subject="act.v1.x", data=b"no json"), id="unreadable"),
        pytest.param(Message(subject="else", data=b"{}"), id="other subject"),
    ],
)
def test_messages_without_a_line(message: Message):
    assert LineReader().read(message, NOW) is None


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
        pytest.param("pods/web-a", True, id="plural and name"),
        pytest.param("po/web-b", False, id="short name and another name"),
        pytest.param("clonesets/web", True, id="owner with the plural of its kind"),
        pytest.param("shop", True, id="namespace"),
        pytest.param("shop/*", True, id="all of a namespace"),
        pytest.param("pod/shop/web-a", True, id="kind, namespace and name"),
        pytest.param("web", True, id="owner"),
        pytest.param("cloneset/web", True, id="owner with its kind"),
        pytest.param("clone/web", True, id="owner with the short name of its kind"),
        pytest.param("pub/web", False, id="the short name of another kind"),
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


class Streams:
    """A bus with stored messages; new ones come when a test sends them."""

    def __init__(self, **held: list[Message]) -> None:
        self._held = held
        self.readers: dict[str, OnMessage] = {}

    async def follow_since(self, stream: str, since: datetime, on_message: OnMessage) -> bool:
        self.readers[stream] = on_message
        held = self._held.get(stream, [])
        for left, message in zip(range(len(held) - 1, -1, -1), held, strict=True):
            on_message(msgspec.structs.replace(message, pending=left))
        return bool(held)


def stored(subject: str, at: float) -> Message:
    return Message(subject=subject, data=b"{}", stored_at=at)


OWNED = Affiliation("CloneSet_apps_kruise_io", "17", "-")
FREE = Affiliation("-", "-", "-")


def on(affiliation: Affiliation, operation: str, body: dict[str, Any], version: str, **headers: str) -> Message:
    """Return the watcher's message about the pod on the subject of these tokens."""
    subject = subjects.pod("shop", "web-a.b", affiliation)
    return Message(subject=subject, data=json.dumps(body).encode(), headers={"op": operation, "rv": version, **headers})


@pytest.mark.parametrize(
    ("former", "new", "cause"),
    [
        pytest.param(FREE, OWNED, "to CloneSet_apps_kruise_io.17.-", id="adopted"),
        pytest.param(OWNED, FREE, "to -.-.-", id="released"),
        pytest.param(OWNED, OWNED._replace(trait="sidecars"), "to CloneSet_apps_kruise_io.17.sidecars", id="sidecars"),
    ],
)
def test_a_pod_that_is_published_on_another_subject(former: Affiliation, new: Affiliation, cause: str):
    reader = LineReader()
    reader.read(on(former, "ADDED", POD_BODY | {"spec": {"nodeName": "n1"}}, "5"), NOW)
    identity = {"metadata": {"name": "web-a.b", "namespace": "shop", "uid": "u", "resourceVersion": "6"}}
    messages = [
        on(new, "MODIFIED", POD_BODY, "6"),
        on(former, "MOVED", identity, "6", to=subjects.pod("shop", "web-a.b", new)),
        on(new, "MODIFIED", POD_BODY | {"spec": {"nodeName": "n2"}}, "7"),
    ]
    lines = [reader.read(message, NOW) for message in messages]
    told = [(line.what, line.cause, line.name, line.owner, line.outcome) for line in lines if line is not None]
    assert told == [
        ("modified", "spec.containers, spec.nodeName", "web-a.b", "CloneSet/web", "rv 6"),
        ("moved", cause, "web-a.b", "CloneSet/web", "rv 6"),
        ("modified", "spec.nodeName, spec.containers", "web-a.b", "CloneSet/web", "rv 7"),
    ]


def test_a_move_of_a_pod_that_was_not_seen_before():
    line = read(on(FREE, "MOVED", {"metadata": {"name": "web-a.b"}}, "6", to=subjects.pod("shop", "web-a.b", OWNED)))
    assert (line.what, line.cause, line.owner) == ("moved", "to CloneSet_apps_kruise_io.17.-", "")


def test_a_pod_of_another_shard_is_a_pod() -> None:
    subject = subjects.pod("shop", "web-a", OWNED, pod_shard(1))
    line = read(Message(subject=subject, data=b"{}", headers={"op": "ADDED", "rv": "5"}))
    assert (line.kind, line.namespace, line.name) == ("Pod", "shop", "web-a")


async def test_the_past_of_all_streams_comes_in_the_order_of_time_and_then_the_present():
    bus = Streams(act=[stored("act.1", 1), stored("act.4", 4)], decisions=[stored("why.2", 2)], why=[])
    heard: list[str] = []
    await traffic.read_since(
        cast("NatsBus", bus), ["act", "decisions", "why"], NOW, lambda message: heard.append(message.subject)
    )
    assert heard == ["act.1", "why.2", "act.4"]
    bus.readers["why"](stored("new", 9))
    assert heard[-1] == "new"


async def test_a_past_that_is_not_read_to_its_end_is_an_error(monkeypatch: pytest.MonkeyPatch):
    class Stuck(Streams):
        async def follow_since(self, stream: str, since: datetime, on_message: OnMessage) -> bool:
            return True

    monkeypatch.setattr(traffic, "PATIENCE_SECONDS", 0.01)
    with pytest.raises(BusError, match="act: not read to the end"):
        await traffic.read_since(cast("NatsBus", Stuck()), ["act"], NOW, lambda message: None)


def test_decisions_are_kept_and_heartbeats_are_not():
    assert traffic.stored_streams(["act", "why", "heartbeat"]) == ["act", "decisions"]
    assert "kube_core_pods" in traffic.stored_streams(["kube"])
    assert {"kube_core_pods", "kube_core_pods-1"} <= {*traffic.stored_streams(["kube"], 2)}
    assert "kube_core_pods-1" not in traffic.stored_streams(["kube"], 1)
    assert traffic.stored_at(stored("x", 0), NOW) == NOW
    assert traffic.stored_at(stored("x", 5), NOW) == datetime.fromtimestamp(5, UTC)


def test_a_users_change_tells_who_with_what_and_which_fields():
    wish = {"service": "webhook", "action": "update", "kind": "CloneSet", "namespace": "shop", "name": "web"}
    changes = [{"path": "spec.replicas", "from": 1, "to": 2}, *({"path": f"spec.n{number}"} for number in range(4))]
    body = wish | {"user": "jane", "manager": "kubectl", "changes": changes, "outcome": "Ok", "message": ""}
    line = LineReader().read(Message(subject="act.v1.webhook.clonesets.shop.web", data=json.dumps(body).encode()), NOW)
    assert line is not None
    assert line.cause == "by jane with kubectl; spec.replicas  1 → 2; spec.n0; spec.n1 and 2 more"
    assert (line.service, line.what, line.outcome) == ("webhook", "update", "Ok")


def test_a_kept_decision_reads_like_a_live_one():
    lines = [
        LineReader().read(Message(subject=f"{word}.v1.clonesets.shop.web", data=json.dumps(WHY).encode()), NOW)
        for word in ("why", "decisions")
    ]
    assert lines[0] == lines[1]


@pytest.mark.parametrize(("given", "span"), [("10m", 600), ("1h30m", 5400), ("45", 45)])
def test_since_is_a_span(given: str, span: int):
    assert DurationParam().convert(given, None, None).total_seconds() == span


@pytest.mark.parametrize("arguments", [["tail", "--no-follow"], ["tail", "--since", "yesterday"]])
def test_what_makes_no_sense_is_refused(arguments: list[str]):
    assert CliRunner().invoke(main, arguments).exit_code == 2
