"""Copies for nodes: to the right node, again when they change, buried when they leave."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.resources import RECREATE_REQUEST
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Delivery
from flotilla_common.kube.reflector import HeadMeta
from flotilla_common.node.reports import FOLLOW, FollowAnswer, FollowRequest
from flotilla_watcher.content import Content
from flotilla_watcher.node_copies import NodeCopies
from flotilla_watcher.node_readers import proper_inbox, serve_node_readers
from flotilla_watcher.routes import recreate_request
from flotilla_watcher.writer import StreamWriter
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock

STREAM = subjects.node_stream(RECREATE_REQUEST)


class Channel:
    """One epoch of copies on a fake bus."""

    def __init__(self, bus: FakeBus) -> None:
        self.bus = bus
        self.version = 0

    async def open(self, epoch: str = "e1") -> NodeCopies:
        clock = FakeClock()
        writer = StreamWriter(
            bus=self.bus,
            clock=clock,
            spec=STREAM,
            marker_subject=subjects.node_marker(RECREATE_REQUEST),
            fence=lambda: True,
        )
        copies = NodeCopies(
            resource=RECREATE_REQUEST,
            route=recreate_request,
            writer=writer,
            content=Content(RECREATE_REQUEST, 1 << 20),
            clock=clock,
            strangers=await writer.open(),
            tombstone_seconds=600,
        )
        await copies.listing(epoch)
        return copies

    def made(self, name: str, node: str, *, active: bool = True, uid: str = "") -> tuple[HeadMeta, bytes]:
        self.version += 1
        labels = {"crr.apps.kruise.io/node-name": node} | ({"crr.apps.kruise.io/active": "true"} if active else {})
        head = HeadMeta(name=name, namespace="x", uid=uid or f"u-{name}", resource_version=str(self.version))
        meta = {"name": name, "namespace": "x", "uid": head.uid, "resourceVersion": str(self.version), "labels": labels}
        return head, msgspec.json.encode({"metadata": meta})

    def held(self) -> dict[str, str]:
        """Subject and operation of what the stream holds, without the marker."""
        messages = self.bus.streams[STREAM.name].messages
        return {
            subject.removeprefix("node.v1."): message.headers[subjects.OP]
            for subject, message in messages.items()
            if subject != subjects.node_marker(RECREATE_REQUEST)
        }

    def marker(self) -> Any:
        data = self.bus.streams[STREAM.name].messages[subjects.node_marker(RECREATE_REQUEST)].data
        return msgspec.json.decode(data, type=subjects.Marker)


@pytest.fixture
def channel() -> Channel:
    return Channel(FakeBus())


async def test_each_node_gets_its_own(channel: Channel) -> None:
    copies = await channel.open()
    await copies.listed(*channel.made("a", "n1"))
    await copies.listed(*channel.made("b", "n2"))
    await copies.listed(*channel.made("c", "n1", active=False))
    await copies.complete("9")
    plural = RECREATE_REQUEST.plural
    assert channel.held() == {f"n1.{plural}.x.a": "ADDED", f"n2.{plural}.x.b": "ADDED"}
    assert (channel.marker().state, channel.marker().rv, channel.marker().count) == ("synced", "9", 2)


async def test_what_leaves_a_node_is_buried_there(channel: Channel) -> None:
    copies = await channel.open()
    await copies.listed(*channel.made("a", "n1"))
    await copies.complete("9")
    await copies.changed(subjects.MODIFIED, *channel.made("a", "n1", active=False))
    assert list(channel.held().values()) == ["DELETED"]
    await copies.changed(subjects.MODIFIED, *channel.made("a", "n1"))
    assert list(channel.held().values()) == ["MODIFIED"]
    await copies.changed(subjects.DELETED, *channel.made("a", "n1"))
    assert list(channel.held().values()) == ["DELETED"]


async def test_a_namesake_on_another_node(channel: Channel) -> None:
    copies = await channel.open()
    await copies.complete("0")
    await copies.changed(subjects.ADDED, *channel.made("a", "n1"))
    await copies.changed(subjects.ADDED, *channel.made("a", "n2", uid="other"))
    assert list(channel.held().values()) == ["DELETED", "ADDED"]


async def test_a_new_epoch_buries_what_is_not_in_it(channel: Channel) -> None:
    first = await channel.open("e1")
    await first.listed(*channel.made("a", "n1"))
    await first.listed(*channel.made("b", "n1"))
    await first.complete("5")
    second = await channel.open("e2")
    await second.listed(*channel.made("b", "n1"))
    await second.complete("9")
    assert list(channel.held().values()) == ["ADDED", "DELETED"]
    assert channel.marker().epoch == "e2"


@pytest.mark.parametrize(
    ("inbox", "proper"),
    [
        ("_INBOX_node.n_example.x1", True),
        ("_INBOX_node.n_example", False),
        ("_INBOX_node.n_example.a.b", False),
        ("_INBOX_node.n_example.*", False),
        ("_INBOX_node.n_example.>", False),
        ("_INBOX_node.other.x1", False),
        ("_INBOX.x1", False),
        ("kube.v1.core.pods.x.y", False),
    ],
)
def test_an_agent_may_name_its_own_inboxes_only(inbox: str, proper: bool) -> None:
    assert proper_inbox("n.example", inbox) is proper


class DeliveringBus(FakeBus):
    """Remembers what it was to deliver."""

    async def deliver(self, stream: str, filters: Any, inbox: str, *, created: str = "", after: int = 0) -> Delivery:
        self.delivered = (stream, list(filters), inbox, created, after)
        return Delivery("c1", resumed=created == "c1")


@pytest.mark.parametrize(("plural", "accepted"), [("pods", True), ("secrets", False), ("nodes", False), ("", False)])
async def test_a_reader_gets_its_nodes_copies_and_the_marker(plural: str, accepted: bool) -> None:
    bus = DeliveringBus()
    bus.inbox = subjects.node_inbox("n1")
    await serve_node_readers(bus)
    request = FollowRequest(plural=plural, inbox="_INBOX_node.n1.x", created="c1", last_sequence=7)
    subject = subjects.report("n1", FOLLOW, "", "anything")
    answer = msgspec.json.decode(await bus.request(subject, msgspec.json.encode(request), 1), type=FollowAnswer)
    assert answer.accepted is accepted
    if accepted:
        assert answer.resumed
        assert bus.delivered == ("node_pods", ["node.v1.n1.pods.>", "node.v1._.pods"], "_INBOX_node.n1.x", "c1", 7)
