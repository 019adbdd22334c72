"""`flotilla bus`: the state of the bus, and the comments on it."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from flotilla_cli.bus.render import render
from flotilla_cli.commands.bus import expected
from flotilla_cli.output import plain
from flotilla_common.bus.interface import Message
from flotilla_common.bus.subjects import Marker
from flotilla_insight.bus.gather import Beat, BusSnapshot, Large, Marked, Share, Traffic
from flotilla_insight.bus.streams import Consumer, Stream
from flotilla_insight.bus.view import BEHIND, View, view
from flotilla_insight.durations import size

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
PODS = "kube_core_pods"


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def stream(name: str = PODS, **more: Any) -> Stream:
    known: dict[str, Any] = {"messages": 50, "bytes": 2048, "max_bytes": -1, "max_age": 0, "first_sequence": 1}
    moments: dict[str, Any] = {"created": ago(3600), "first_at": ago(3000), "last_at": ago(2), "last_sequence": 100}
    return Stream(name=name, **(known | moments | more))


def consumer(pending: int = 0, reader: str = "cloneset/r1") -> Consumer:
    return Consumer(stream=PODS, name="c", reader=reader, pending=pending, unacknowledged=0, delivered=90)


def marked(age: float, state: str = "synced") -> Marked:
    return Marked(resource="core.pods", marker=Marker(epoch="0.a", state=state, rv="9"), at=ago(age))


WATCHER = Beat(service="watcher", replica="w1", version="1", resources=("core.pods",))


def seen(**more: Any) -> View:
    known: dict[str, Any] = {
        "now": NOW,
        "seconds": 5.0,
        "before": [stream(last_sequence=50)],
        "streams": [stream()],
        "consumers": [consumer()],
        "markers": {PODS: marked(3)},
        "beats": [WATCHER],
        "stream_bytes": {PODS: 5120},
        "busiest": [Share("kube", "shop", "pods", 50, 5120)],
        "largest": [Large("kube.v1.core.pods.shop.web-1.-.-.-", 4096)],
    }
    return view(BusSnapshot(**(known | more)), ["watcher"])


def test_a_stream_has_rates_readers_and_its_marker() -> None:
    (row,) = seen().streams
    assert (row.message_rate, row.byte_rate, row.readers, row.last_seconds) == (10.0, 1024.0, 1, 2.0)
    assert (row.state, row.epoch, row.marker_seconds, row.publisher) == ("synced", "0.a", 3.0, "watcher/w1")
    assert seen().findings == []


@pytest.mark.parametrize(
    ("more", "finding"),
    [
        ({"markers": {PODS: marked(90)}}, "may be out of date: its marker is 90s old; watcher/w1 publishes it"),
        ({"markers": {PODS: marked(90)}, "beats": []}, "no watcher publishes it"),
        ({"markers": {PODS: marked(1, "listing")}}, "kube_core_pods is being listed again"),
        ({"consumers": [consumer(BEHIND + 1)]}, f"cloneset/r1 is {BEHIND + 1} messages behind in kube_core_pods"),
        ({"beats": []}, "no heartbeat of watcher"),
        ({"beats": [WATCHER, Beat(service="jobs", replica="j", version="2")]}, "of different versions: 1, 2"),
        (
            {"streams": [stream("act", bytes=98, max_bytes=100, max_age=86400, first_sequence=9)]},
            "act is full: it holds the last 50m instead of 24h",
        ),
        (
            {"beats": [WATCHER, Beat(service="jobs", replica="j", version="1", waiting={"mirror": "waiting for x"})]},
            "jobs/j waits: mirror waiting for x",
        ),
    ],
)
def test_what_is_not_as_it_should_be_is_said(more: dict[str, Any], finding: str) -> None:
    assert any(finding in one for one in seen(**more).findings), seen(**more).findings


def test_who_has_little_to_come_is_shown_and_not_complained_of() -> None:
    found = seen(consumers=[consumer(3), consumer(7, "jobs/j")])
    assert [one.reader for one in found.behind] == ["jobs/j", "cloneset/r1"]
    assert found.streams[0].pending == 7
    assert not found.findings


def test_all_of_it_is_on_one_screen() -> None:
    empty = [stream(f"kube_x_{number}", messages=1) for number in range(20)]
    found = seen(streams=[stream(), *empty], consumers=[consumer(3)])
    text = plain(render(found, everything=False))
    assert len(text.splitlines()) < 40
    for words in (
        "nothing is behind",
        "20 streams that hold no objects",
        "2.0 KiB",
        "kube pods",
        "cloneset/r1",
        "3s ago",
    ):
        assert words in text
    assert "kube_x_19" in plain(render(found, everything=True))


def test_sizes_are_for_people() -> None:
    assert [size(number) for number in (0, 1023, 1536, 3 << 20, 5 << 30)] == [
        *("0 B", "1023 B", "1.5 KiB", "3.0 MiB", "5.0 GiB")
    ]


def test_it_is_one_json_document() -> None:
    document = json.loads(msgspec.json.encode(seen()))
    assert document["streams"][0]["messageRate"] == 10.0


def test_traffic_is_counted_by_stream_and_by_what_it_is_about() -> None:
    traffic = Traffic()
    for subject in (
        *("kube.v1.core.pods.shop.web-1.-.-.-", "kube.v1.core.pods.shop.web-2.ReplicaSet_apps.5.sidecars"),
        "kube.v1.core.pods",
        *("act.v1.cloneset.pods.shop.web-1", "why.v1.clonesets.shop.web", "node.v1.n1.nodeimages._.n1"),
    ):
        traffic.on_message(Message(subject=subject, data=b"x" * 10, headers={"op": "ADDED"}))
    shares = {(one.source, one.namespace, one.what): one.messages for one in traffic.largest(10)}
    assert shares == {
        ("kube", "shop", "pods"): 2,
        ("kube", "", "markers"): 1,
        ("act", "shop", "pods by cloneset"): 1,
        ("why", "shop", "clonesets"): 1,
        ("node", "", "nodeimages"): 1,
    }
    assert traffic.bytes_by_stream.keys() == {PODS, "act", "why", "node_nodeimages"}
    assert traffic.bytes_by_stream["why"] == len("why.v1.clonesets.shop.web") + 10 + len("opADDED")


def test_services_that_run_on_demand_need_no_heartbeat() -> None:
    assert {"watcher", "webhook"} <= set(expected())
    assert not {"statemetrics", "nodeagent"} & set(expected())
