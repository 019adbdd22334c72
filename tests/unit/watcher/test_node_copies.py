"""Copies for the nodes whose agents read: all of them, again when they change, buried when they leave."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError, Message
from flotilla_common.kube.reflector import HeadMeta
from flotilla_watcher.encoder import Encoder
from flotilla_watcher.node_copies import NodeCopies, NodeIndex, NotComplete
from flotilla_watcher.published_objects import Key
from flotilla_watcher.routes import routes
from flotilla_watcher.writer import StreamWriter
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock

STREAM = subjects.node_stream(RECREATE_REQUEST)
PLURAL = RECREATE_REQUEST.plural


class Cluster:
    """Requests on some nodes, what kube.v1 has of them, and the copies on a fake bus."""

    def __init__(self) -> None:
        self.bus = FakeBus()
        self.clock = FakeClock()
        self.version = 0
        self.stored: dict[str, Message] = {}  # by name
        self.reading = asyncio.Event()  # of kube.v1
        self.may_read = asyncio.Event()
        self.may_read.set()

    async def open(self, *served: str) -> NodeCopies:
        """Take the stream over."""
        writer = StreamWriter(
            bus=self.bus,
            clock=self.clock,
            spec=STREAM,
            marker_subject=subjects.node_marker(RECREATE_REQUEST),
            fence=lambda: True,
        )
        return NodeCopies(
            resource=RECREATE_REQUEST,
            route=routes()[RECREATE_REQUEST],
            writer=writer,
            encoder=Encoder(RECREATE_REQUEST, 1 << 20),
            stored=self._stored,
            leftover_subjects=await writer.open(),
            served=served,
            clock=self.clock,
            tombstone_seconds=600,
        )

    async def relist(self, copies: NodeCopies, epoch: str = "e1", **nodes: str) -> None:
        """List requests by name, with their nodes."""
        await copies.listing(epoch)
        for name, node in nodes.items():
            await copies.listed(*self.made(name, node))
        await copies.complete(str(self.version))

    def made(self, name: str, node: str, *, active: bool = True, uid: str = "") -> tuple[HeadMeta, bytes]:
        """Return a new version of a request, on kube.v1 already."""
        self.version += 1
        labels = {"crr.apps.kruise.io/node-name": node} | ({"crr.apps.kruise.io/active": "true"} if active else {})
        head = HeadMeta(name=name, namespace="x", uid=uid or f"u-{name}", resource_version=str(self.version))
        meta = {"name": name, "namespace": "x", "uid": head.uid, "resourceVersion": str(self.version), "labels": labels}
        body = msgspec.json.encode({"metadata": meta})
        headers = {subjects.UID: head.uid, subjects.RV: head.resource_version, subjects.OP: subjects.MODIFIED}
        self.stored[name] = Message(subject=subjects.kube(RECREATE_REQUEST, "x", name), data=body, headers=headers)
        return head, body

    def gone(self, name: str) -> tuple[str, HeadMeta, bytes]:
        """Return a request's delete, as it comes."""
        head, body = self.made(name, "anywhere")
        headers = {**self.stored[name].headers, subjects.OP: subjects.DELETED}
        self.stored[name] = msgspec.structs.replace(self.stored[name], headers=headers)
        return subjects.DELETED, head, body

    async def _stored(self, keys: Sequence[Key]) -> list[Message]:
        if not self.bus.connected:
            raise BusError("away")
        self.reading.set()
        await self.may_read.wait()
        return [self.stored[name] for _, name in keys]

    def of(self, node: str) -> list[str]:
        """Return what the node's agent receives, in the order of the stream.

        Names, with a minus for tombstones, and the state of the marker with the version up to which it holds.
        """
        told: list[str] = []
        for subject, message in self.bus.streams[STREAM.name].messages.items():
            if not subject.startswith(f"node.v1.{node}."):
                continue
            if subjects.marked_node(subject):
                marker = msgspec.json.decode(message.data, type=subjects.Marker)
                told.append(f"{marker.state}@{marker.rv}")
            else:
                deleted = message.headers[subjects.OP] == subjects.DELETED
                told.append("-" * deleted + subject.rpartition(".")[2])
        return told

    def count(self) -> int:
        """Return the number of messages ever published."""
        return self.bus.streams[STREAM.name].sequence


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


async def test_an_object_that_is_deleted_within_the_list_gets_a_tombstone(cluster: Cluster) -> None:
    copies = await cluster.open("n1")
    await copies.listing("e1")
    for name in "ab":
        await copies.listed(*cluster.made(name, "n1"))
    _, head, _ = cluster.gone("a")
    await copies.unlisted(head)
    with pytest.raises(NotComplete):
        await copies.serve("n2")
    await copies.complete(str(cluster.version))
    assert cluster.of("n1") == ["b", "-a", f"synced@{cluster.version}"]
    cluster.made("c", "n1")
    await cluster.relist(copies, "e2", c="n1")
    assert cluster.of("n1") == ["-a", "c", "-b", f"synced@{cluster.version}"]


async def test_without_agents_there_are_no_copies(cluster: Cluster) -> None:
    copies = await cluster.open()
    await cluster.relist(copies, a="n1", b="n2")
    before = cluster.count()
    await copies.changed(subjects.MODIFIED, *cluster.made("a", "n1"))
    await copies.changed(subjects.ADDED, *cluster.made("c", "n1"))
    await copies.changed(*cluster.gone("a"))
    assert cluster.count() == before
    assert cluster.of("n1") == cluster.of("n2") == []


async def test_a_node_that_asks_gets_all_that_concerns_it_and_then_the_marker(cluster: Cluster) -> None:
    copies = await cluster.open()
    await cluster.relist(copies, a="n1", b="n2", c="n1", d="n1")
    await copies.changed(subjects.MODIFIED, *cluster.made("d", "n1", active=False))
    await copies.changed(subjects.ADDED, *cluster.made("e", "n1"))
    await copies.changed(*cluster.gone("c"))
    await copies.serve("n1")
    assert cluster.of("n1") == ["a", "e", f"synced@{cluster.version}"]
    assert cluster.of("n2") == []


async def test_a_node_that_is_served_gets_what_changes_and_no_other_does(cluster: Cluster) -> None:
    copies = await cluster.open()
    await cluster.relist(copies, a="n1", b="n2")
    await copies.serve("n1")
    await copies.changed(subjects.ADDED, *cluster.made("c", "n1"))
    await copies.changed(subjects.MODIFIED, *cluster.made("b", "n2"))
    await copies.changed(*cluster.gone("a"))
    assert cluster.of("n1") == ["synced@2", "c", "-a"]
    assert cluster.of("n2") == []


async def test_asking_again_costs_nothing(cluster: Cluster) -> None:
    copies = await cluster.open()
    await cluster.relist(copies, a="n1")
    await copies.serve("n1")
    before = cluster.count()
    await copies.serve("n1")
    assert cluster.count() == before


async def test_an_event_waits_for_an_asking_that_is_answered(cluster: Cluster) -> None:
    """The asking reads an old version; the event that has the new one must not be overtaken by it."""
    copies = await cluster.open()
    await cluster.relist(copies, a="n1", b="n1")
    cluster.may_read.clear()
    asking = asyncio.create_task(copies.serve("n1"))
    await cluster.reading.wait()
    change = asyncio.create_task(copies.changed(subjects.MODIFIED, *cluster.made("a", "n1", active=False)))
    added = asyncio.create_task(copies.changed(subjects.ADDED, *cluster.made("c", "n1")))
    cluster.may_read.set()
    await asyncio.gather(asking, change, added)
    assert cluster.of("n1") == ["b", "synced@2", "c"]


async def test_nobody_is_served_before_the_first_list_is_complete(cluster: Cluster) -> None:
    copies = await cluster.open()
    await copies.listing("e1")
    await copies.listed(*cluster.made("a", "n1"))
    with pytest.raises(NotComplete):
        await copies.serve("n1")
    await copies.complete("1")
    await copies.serve("n1")
    assert cluster.of("n1") == ["a", "synced@1"]


async def test_an_asking_that_fails_can_be_repeated(cluster: Cluster) -> None:
    copies = await cluster.open()
    await cluster.relist(copies, a="n1")
    cluster.bus.connected = False
    with pytest.raises(BusError):
        await copies.serve("n1")
    cluster.bus.connected = True
    await copies.serve("n1")
    assert cluster.of("n1") == ["a", "synced@1"]


async def test_what_leaves_a_node_is_buried_there(cluster: Cluster) -> None:
    copies = await cluster.open("n1")
    await cluster.relist(copies, a="n1")
    await copies.changed(subjects.MODIFIED, *cluster.made("a", "n1", active=False))
    assert cluster.of("n1") == ["synced@1", "-a"]
    await copies.changed(subjects.MODIFIED, *cluster.made("a", "n1"))
    assert cluster.of("n1") == ["synced@1", "a"]
    await copies.changed(*cluster.gone("a"))
    assert cluster.of("n1") == ["synced@1", "-a"]


@pytest.mark.parametrize("served", [("n1", "n2"), ("n1",), ("n2",)], ids=["both read", "the old one", "the new one"])
async def test_a_namesake_on_another_node(cluster: Cluster, served: tuple[str, ...]) -> None:
    copies = await cluster.open(*served)
    await cluster.relist(copies, a="n1")
    await copies.changed(subjects.ADDED, *cluster.made("a", "n2", uid="other"))
    assert cluster.of("n1") == (["synced@1", "-a"] if "n1" in served else [])
    assert cluster.of("n2") == (["synced@1", "a"] if "n2" in served else [])


async def test_a_new_epoch_buries_what_is_not_in_it(cluster: Cluster) -> None:
    copies = await cluster.open("n1")
    await cluster.relist(copies, a="n1", b="n1")
    await cluster.relist(copies, "e2", b="n1", c="n2")
    assert cluster.of("n1") == ["b", "-a", "synced@4"]
    await copies.serve("n2")
    assert cluster.of("n2") == ["c", "synced@4"]


async def test_a_successor_serves_whom_its_predecessor_served(cluster: Cluster) -> None:
    first = await cluster.open()
    await cluster.relist(first, a="n1", b="n1", c="n2")
    await first.serve("n1")
    await first.serve("empty")
    second = await cluster.open()
    assert second.served == {"n1", "empty"}
    await cluster.relist(second, "e2", b="n1", c="n2")
    assert cluster.of("n1") == ["b", "-a", "synced@5"]
    assert cluster.of("empty") == ["synced@5"]
    assert cluster.of("n2") == []


async def test_a_stream_that_was_lost_is_filled_for_those_that_were_served(cluster: Cluster) -> None:
    first = await cluster.open()
    await cluster.relist(first, a="n1")
    await first.serve("n1")
    cluster.bus.wipe()
    second = await cluster.open(*first.served)
    await cluster.relist(second, "e2", a="n1")
    assert cluster.of("n1") == ["a", "synced@2"]


async def test_a_node_that_nobody_reads_is_retired_and_may_come_back(cluster: Cluster) -> None:
    copies = await cluster.open("n1")
    await cluster.relist(copies, a="n1", b="n1")
    await copies.retire("n1", cluster.clock.monotonic())
    assert sorted(cluster.of("n1")) == ["-a", "-b", "listing@2"]
    before = cluster.count()
    await copies.changed(subjects.MODIFIED, *cluster.made("a", "n1"))
    assert cluster.count() == before
    await copies.serve("n1")
    assert sorted(cluster.of("n1")) == ["a", "b", "synced@3"]


async def test_a_node_that_asked_meanwhile_is_not_retired(cluster: Cluster) -> None:
    copies = await cluster.open()
    await cluster.relist(copies, a="n1")
    since = cluster.clock.monotonic()
    await cluster.clock.sleep(600)
    await copies.serve("n1")
    await copies.retire("n1", since)
    assert cluster.of("n1") == ["a", "synced@1"]


async def test_an_unreadable_object_goes_to_no_node(cluster: Cluster) -> None:
    copies = await cluster.open("n1")
    await cluster.relist(copies, a="n1")
    head, _ = cluster.made("a", "n1")
    await copies.changed(subjects.MODIFIED, head, b'{"metadata":{"labels":7}}')
    assert cluster.of("n1") == ["synced@1", "-a"]


def test_the_index_knows_both_ways() -> None:
    index = NodeIndex()
    changes: list[Any] = [
        (("x", "a"), "n1"),
        (("x", "b"), "n1"),
        (("x", "a"), "n2"),
        (("x", "c"), ""),
        (("x", "b"), ""),
    ]
    for key, node in changes:
        index.put(key, node)
    assert (index.of("n1"), index.of("n2")) == (frozenset(), {("x", "a")})
    assert index.without({("x", "b")}) == [("x", "a")]
    assert index.without({("x", "a")}) == []
