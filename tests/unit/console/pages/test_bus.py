"""The page of the bus, and the look behind it."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

import msgspec
import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import LEASE, NODE, POD, Resource
from flotilla_common.bus.interface import BusError, Message
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.subjects import Marker
from flotilla_common.control.leases import Lease
from flotilla_console.blocks.types import Graph, Group, Notice
from flotilla_console.page import Page
from flotilla_console.pages.bus import BusRead, bus_page, needed, object_of, page
from flotilla_console.story import bus_look
from flotilla_console.story.bus_look import EVERY_SECONDS, FIRST_SECONDS, BusLook, BusWatcher, estimated_bytes
from flotilla_console.story.traffic import ObjectKey, Traffic
from flotilla_insight.bus.gather import BusSnapshot, Marked
from flotilla_insight.bus.streams import Consumer, Stream
from tests.support.fake_clock import START, FakeClock
from tests.testkit.apiserver import FakeApi
from tests.unit.console.model.worlds import Only, World, column, table, texts

PODS, ACT = "kube_core_pods", "act"
SYSTEM = "flotilla-system"
POD_SUBJECT = "kube.v1.core.pods.shop.web_0.CloneSet_apps_kruise_io.32.-"


def stream(name: str = PODS, **more: Any) -> Stream:
    ago = START - timedelta(hours=1)
    known: dict[str, Any] = {"messages": 50, "bytes": 5000, "max_bytes": -1, "max_age": 0, "first_sequence": 1}
    moments: dict[str, Any] = {"created": ago, "first_at": ago, "last_at": START, "last_sequence": 100}
    return Stream(name=name, **known | moments | more)


def consumer(name: str, reader: str, pending: int = 0, of: str = PODS) -> Consumer:
    return Consumer(stream=of, name=name, reader=reader, pending=pending, unacknowledged=0, delivered=90)


def snapshot(**more: Any) -> BusSnapshot:
    known: dict[str, Any] = {
        "now": START,
        "seconds": 5.0,
        "before": [stream(last_sequence=50), stream(ACT)],
        "streams": [stream(), stream(ACT)],
        "consumers": [
            consumer("a", "cloneset/r1", 1000),
            consumer("b", "cloneset/r2"),
            consumer("c", "node node-1"),
            consumer("d", "watcher/w1", of=ACT),
        ],
        "markers": {PODS: Marked(resource="core.pods", marker=Marker(epoch="0.a", state="synced", rv="9"), at=START)},
        "beats": [],
        "stream_bytes": {PODS: 5000},
        "busiest": [],
        "largest": [],
    }
    return BusSnapshot(**known | more)


def lease(name: str, holder: str | None, service: str = "cloneset", **more: Any) -> Lease:
    labels = {
        "flotilla.kruise.io/service": service,
        "flotilla.kruise.io/role": "shard",
        "flotilla.kruise.io/shards": "11",
    }
    spec = {"holderIdentity": holder, "renewTime": "2026-01-01T00:00:00.000000Z"} | more
    return msgspec.convert({"metadata": {"name": name, "namespace": SYSTEM, "labels": labels}, "spec": spec}, Lease)


def world() -> World:
    made = World()
    made.clone_set()
    made.pod("web-0")
    made.pod("api-0", "bank")
    beat(made, "watcher", "w1", resources=["core.pods"])
    beat(
        made, "cloneset", "r1", holder="r1-x", shards=[0, 2], lag=1.5, direct=["core.pods"], waiting={"mirror": "pods"}
    )
    return made


def beat(made: World, service: str, replica: str, **more: Any) -> None:
    body = {"service": service, "replica": replica, "version": "1.2"} | more
    made.model.beats.take(Message(subject=f"heartbeat.v1.{service}.{replica}", data=msgspec.json.encode(body)))


def built(
    look: BusLook | None = None,
    allowed: Any = None,
    made: World | None = None,
    traffic: Traffic | None = None,
    **query: str,
) -> Page:
    look = look or BusLook(snapshot=snapshot(), leases=(lease("cloneset-10", "r1-x"), lease("cloneset-2", None)))
    read = BusRead(look=look, traffic=traffic)
    return bus_page((made or world()).request(allowed, read, query), SYSTEM, ["watcher", "cloneset", "jobs"])


def test_the_graph_leads_from_watchers_through_streams_to_services() -> None:
    graph = next(block for block in built().blocks if isinstance(block, Graph))
    assert [(one.label, one.column, one.tone) for one in graph.nodes] == [
        ("watcher/w1", 0, "ok"),
        (PODS, 1, "warn"),
        (ACT, 1, "ok"),
        ("cloneset", 2, "ok"),
        ("nodeagent", 2, "idle"),
        ("watcher", 2, "ok"),
    ]
    assert [(one.source, one.target, one.label) for one in graph.edges] == [
        ("p/watcher/w1", f"s/{PODS}", ""),
        (f"s/{ACT}", "r/watcher", ""),
        (f"s/{PODS}", "r/cloneset", "1000 behind"),
        (f"s/{PODS}", "r/nodeagent", ""),
    ]


def test_the_tables_have_all_of_the_graph_and_more() -> None:
    found = built()
    streams = table(found, "streams")
    assert column(streams, "stream") == [PODS, ACT]
    assert column(streams, "rate") == ["10.0", "0.0"]
    assert column(streams, "bytes") == ["1000 B", "0 B"]
    assert column(streams, "marker") == ["synced, 0s ago", ""]
    assert column(table(found, "readers"), "pending") == ["1000", "0", "0", "0"]
    replicas = table(found, "replicas")
    assert column(replicas, "replica") == ["cloneset/r1", "watcher/w1"]
    assert column(replicas, "shards") == ["0, 2", ""]
    assert column(replicas, "lag") == ["1.5 s ago", ""]
    assert column(replicas, "direct") == ["1 resources, not by the bus", "no"]
    assert column(replicas, "waits") == ["mirror pods", ""]


def test_who_is_silent_or_behind_is_said_first() -> None:
    said = texts([block for block in built().blocks if isinstance(block, Notice)])
    assert "no heartbeat of jobs" in said
    assert "cloneset/r1 is 1000 messages behind in kube_core_pods" in said


def test_a_replica_that_fell_silent_is_shown_and_counts_as_missing() -> None:
    made = world()
    made.clock.time += 60
    found = built(made=made)
    assert column(table(found, "replicas"), "state") == ["silent for 60s", "silent for 60s"]
    assert "no heartbeat of watcher" in texts(found)


def test_shards_have_holders_in_the_order_of_their_numbers() -> None:
    found = table(built(), "shards")
    assert column(found, "lease") == ["cloneset-2", "cloneset-10"]
    assert column(found, "holder") == ["no holder", "cloneset/r1 alive"]


def test_leases_and_readers_are_folded_away_unless_something_is_wrong() -> None:
    def folds(page: Page) -> dict[str, tuple[str, bool]]:
        groups = [block for block in page.blocks if isinstance(block, Group)]
        return {one.id: ("".join(getattr(piece, "text", "") for piece in one.summary), one.open) for one in groups}

    found = folds(built())
    assert found["all-leases"] == ("All leases (2), 1 without a live holder", True)
    held = BusLook(snapshot=snapshot(), leases=(lease("cloneset-10", "r1-x"),))
    assert folds(built(held))["all-leases"] == ("All leases (1)", False)
    assert found["all-readers"] == ("All readers (4)", True)


def test_leases_of_the_dead_and_with_hostile_times_are_shown() -> None:
    look = BusLook(
        leases=(lease("a-1", "gone-y", renewTime="0001-01-01T00:00:00Z"), lease("a-<2>", "r1-x", renewTime="x"))
    )
    assert column(table(built(look), "shards"), "holder") == ["cloneset/r1 alive", "gone-y no heartbeat"]


def test_only_namespaces_that_may_be_seen_are_counted() -> None:
    rights = Only(leases=(SYSTEM,), pods=("shop",), clonesets=("shop",))
    found = table(built(allowed=rights), "namespaces")
    assert (column(found, "namespace"), column(found, "pods"), column(found, "workloads")) == (["shop"], ["1"], ["1"])


def test_the_page_needs_a_right_of_its_own() -> None:
    found = built(allowed=Only(pods=("shop", "bank"), nodes=("",), leases=("shop",)))
    assert "It needs the right to list leases in namespace flotilla-system." in texts(found)
    assert PODS not in texts(found)
    assert (needed(SYSTEM).verb, needed(SYSTEM).plural, needed(SYSTEM).namespace) == ("list", "leases", SYSTEM)


def test_what_could_not_be_read_is_said_and_the_rest_is_shown() -> None:
    found = built(BusLook(bus_error="no connection", leases_error="forbidden"))
    assert "no connection" in texts(found)
    assert "forbidden" in texts(found)
    assert column(table(found, "replicas"), "replica") == ["cloneset/r1", "watcher/w1"]


def test_bytes_are_estimated_by_the_mean_size() -> None:
    before = [stream(last_sequence=90), stream(ACT, last_sequence=500)]
    after = [stream(last_sequence=100), stream(ACT, last_sequence=3), stream("new", messages=0)]
    assert estimated_bytes(before, after) == {PODS: 1000, ACT: 0, "new": 0}


class Server:
    """A bus with one stream, whose sequence grows by ten with each look."""

    def __init__(self) -> None:
        self.looks = 0
        self.error = ""

    async def streams(self, bus: NatsBus) -> list[Stream]:
        self.looks += 1
        if self.error:
            raise BusError(self.error)
        return [stream(last_sequence=10 * self.looks)]

    async def consumers(self, bus: NatsBus, name: str) -> list[Consumer]:
        return [consumer("a", "cloneset/r1")]

    async def markers(self, bus: NatsBus, streams: object) -> Mapping[str, Marked]:
        return {}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    monkeypatch.setattr(bus_look, "list_streams", made.streams)
    monkeypatch.setattr(bus_look, "list_consumers", made.consumers)
    monkeypatch.setattr(bus_look, "markers", made.markers)
    return made


def watcher(clock: FakeClock) -> BusWatcher:
    return BusWatcher(cast("NatsBus", None), FakeApi().api, clock, SYSTEM)


async def test_viewers_share_a_look_and_rates_are_differences_of_two(server: Server) -> None:
    clock = FakeClock()
    looking = watcher(clock)
    first, same = await asyncio.gather(looking.look(), looking.look())
    assert first is same
    assert first.snapshot is not None
    assert (server.looks, first.snapshot.seconds) == (2, FIRST_SECONDS)
    assert await looking.look() is first
    clock.time += EVERY_SECONDS + 1
    second = (await looking.look()).snapshot
    assert second is not None
    assert server.looks == 3
    assert [one.last_sequence for one in (*second.before, *second.streams)] == [20, 30]


async def test_a_bus_that_fails_leaves_the_leases(server: Server) -> None:
    server.error = "no responders"
    look = await watcher(FakeClock()).look()
    assert (look.snapshot, look.bus_error, look.leases_error) == (None, "no responders", "")


class Messages:
    """A bus without messages; it notes about which objects it was asked."""

    def __init__(self) -> None:
        self.asked: list[ObjectKey] = []

    async def read(self, resource: Resource, namespace: str, name: str) -> Traffic:
        self.asked.append((resource, namespace, name))
        return Traffic()


async def test_only_what_may_be_seen_is_read(server: Server) -> None:
    messages = Messages()
    prepare = page(watcher(FakeClock()), messages, SYSTEM, ()).prepare
    assert prepare is not None
    subject = {"subject": POD_SUBJECT}
    assert await prepare(world().request(Only(), query=subject)) == BusRead()
    assert (server.looks, messages.asked) == (0, [])
    assert await prepare(world().request(Only(pods=("shop",)), query=subject)) == BusRead(traffic=Traffic())
    assert (server.looks, messages.asked) == (0, [(POD, "shop", "web.0")])
    read = await prepare(world().request(Only(leases=(SYSTEM,)), query=subject))
    assert isinstance(read, BusRead)
    assert (read.look is not None, read.traffic) == (True, None)
    assert LEASE.plural == "leases"


@pytest.mark.parametrize(
    ("subject", "named"),
    [
        (POD_SUBJECT, (POD, "shop", "web.0")),
        ("kube.v1.core.pods-3.shop.web", (POD, "shop", "web")),
        ("kube.v1.apps_kruise_io.clonesets.shop.web", (CLONE_SET, "shop", "web")),
        ("kube.v1.core.nodes._.node-1", (NODE, "", "node-1")),
        ("kube.v1.core.secrets.shop.web", None),
        ("kube.v1.core.pods", None),
        ("kube.v1.core.pods.shop.*", None),
        ("kube.v1.core.pods.*.web", None),
        ("kube.v1.core.pods.shop.>", None),
        ("kube.v1.core.pods.shop.web\r\nPUB act.v1.x 0\r\n", None),
        ("kube.v1.core.pods.shop.web\n", None),
        ("kube.v1.core.pods.shop.a b", None),
        ("kube.v1.core.pods.shop.", None),
        ("act.v1.cloneset.pods.shop.web", None),
        ("", None),
    ],
)
def test_subjects_name_objects(subject: str, named: ObjectKey | None) -> None:
    assert object_of(subject) == named


def test_messages_about_an_object_are_for_all_who_may_see_it() -> None:
    shown = texts(built(allowed=Only(pods=("shop",)), traffic=Traffic(), subject=POD_SUBJECT))
    assert "The bus has no messages about it." in shown
    assert PODS not in shown
    assert "or you may not see it" in texts(built(allowed=Only(), subject=POD_SUBJECT))
