"""Reading the node's copies: in order, without a gap, from where it was or from the start."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST, ContainerRecreateRequest
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError, Message
from flotilla_common.node.reports import FollowAnswer, FollowRequest
from flotilla_nodeagent.copies import Copies
from flotilla_nodeagent.reader import Ended, Heartbeat, Object, Reader, read_delivery
from tests.simulation.loop import SeededEntropy, SimulatedClock, SimulatedLoop, run

PLURAL = RECREATE_REQUEST.plural


class Wire:
    """A bus that answers requests to read, and delivers by hand."""

    def __init__(self) -> None:
        self.connected = True
        self.requests: list[FollowRequest] = []
        self.answer = FollowAnswer(accepted=True, created="c1")
        self.receive: Callable[[Message], None] = lambda _: None
        self.number = self.sequence = 0

    async def subscribe(self, inbox: str, on_message: Callable[[Message], None]) -> Any:
        self.receive, self.number = on_message, 0
        return self

    async def stop(self) -> None:
        self.receive = lambda _: None

    async def request(self, subject: str, data: bytes, timeout: float) -> bytes:
        assert subject == f"report.v1.n1.follow._.{PLURAL}"
        self.requests.append(msgspec.json.decode(data, type=FollowRequest))
        if not self.connected:
            raise BusError("away")
        return msgspec.json.encode(self.answer)

    def send(self, name: str, *, skip: int = 0) -> None:
        self.number += 1 + skip
        self.sequence += 1
        reply = f"$JS.ACK.s.c.1.{self.sequence}.{self.number}.0.0"
        self.receive(Message(subject=f"node.v1.n1.{PLURAL}.x.{name}", data=b"{}", reply=reply))

    def beat(self, sent: int | None = None) -> None:
        number = str(self.number if sent is None else sent)
        self.receive(Message(subject="i", data=b"", headers={"Status": "100", "Nats-Last-Consumer": number}))


class Story:
    """A reader on a wire."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.wire = Wire()
        self.seen: list[str] = []
        self.resets = 0
        self.reader = Reader(
            bus=self.wire,
            clock=SimulatedClock(loop),
            entropy=SeededEntropy(1),
            node="n1",
            resource=RECREATE_REQUEST,
            on_message=lambda message: self.seen.append(message.subject.rpartition(".")[2]),
            on_reset=self._reset,
        )
        self.task = loop.create_task(self.reader.run())

    def _reset(self) -> None:
        self.resets += 1


def tell(story: Callable[[Story], Any]) -> None:
    async def main(loop: SimulatedLoop) -> None:
        made = Story(loop)
        await asyncio.sleep(1)
        await story(made)

    run(main)


def test_it_asks_once_and_takes_what_comes() -> None:
    async def story(it: Story) -> None:
        it.wire.send("a")
        it.wire.beat()
        it.wire.send("b")
        await asyncio.sleep(10)
        assert it.seen == ["a", "b"]
        (request,) = it.wire.requests
        assert (request.plural, request.created, it.resets) == (PLURAL, "", 1)
        assert request.inbox.startswith("_INBOX_node.n1.")
        assert it.reader.healthy

    tell(story)


@pytest.mark.parametrize(("again", "most"), [(False, 3), (True, 200)])
def test_a_watcher_that_does_not_know_the_kind_is_asked_rarely(again: bool, most: int) -> None:
    """It counts against the node's quota of requests, shared with the reads of other kinds."""

    async def story(it: Story) -> None:
        it.wire.answer = FollowAnswer(why="nodes get none", again=again)
        it.wire.send("a", skip=1)
        await asyncio.sleep(70)
        assert most / 2 < len(it.wire.requests) - 1 <= most
        it.wire.answer = FollowAnswer(accepted=True, created="c1")
        await asyncio.sleep(31)
        assert it.reader.healthy

    tell(story)


def test_a_gap_has_it_asked_again_from_where_it_was() -> None:
    async def story(it: Story) -> None:
        it.wire.send("a")
        it.wire.answer = FollowAnswer(accepted=True, created="c1", resumed=True)
        it.wire.send("b", skip=1)
        await asyncio.sleep(1)
        assert it.seen == ["a"]
        assert (it.wire.requests[1].created, it.wire.requests[1].last_sequence) == ("c1", 1)
        it.wire.send("b")
        assert it.seen == ["a", "b"]
        assert it.resets == 1

    tell(story)


@pytest.mark.parametrize("sent", [1, 3], ids=["a message was lost", "the last one was lost"])
def test_a_heartbeat_that_disagrees(sent: int) -> None:
    async def story(it: Story) -> None:
        it.wire.send("a")
        it.wire.send("b")
        it.wire.beat(sent)
        await asyncio.sleep(1)
        assert len(it.wire.requests) == 2

    tell(story)


def test_silence_has_it_asked_again() -> None:
    async def story(it: Story) -> None:
        it.wire.send("a")
        await asyncio.sleep(14)
        assert len(it.wire.requests) == 2

    tell(story)


def test_another_stream_is_read_from_its_start() -> None:
    async def story(it: Story) -> None:
        it.wire.send("a")
        it.wire.answer = FollowAnswer(accepted=True, created="c2")
        it.wire.receive(Message(subject="i", data=b"", headers={"Status": "409", "Description": "Consumer Deleted"}))
        await asyncio.sleep(1)
        assert it.resets == 2
        it.wire.send("a")
        assert it.seen == ["a", "a"]

    tell(story)


def test_after_a_long_absence_everything_is_read() -> None:
    async def story(it: Story) -> None:
        it.wire.send("a")
        it.wire.connected = False
        await asyncio.sleep(300)
        it.wire.connected = True
        await asyncio.sleep(1)
        assert it.wire.requests[-1].created == ""

    tell(story)


def test_what_comes_before_the_answer_is_kept_in_order() -> None:
    async def story(it: Story) -> None:
        it.task.cancel()
        await asyncio.sleep(0)
        early = Story(asyncio.get_running_loop())
        ask = early.wire.request

        async def slow(subject: str, data: bytes, timeout: float) -> bytes:
            early.wire.send("a")
            early.wire.send("b")
            return await ask(subject, data, timeout)

        early.wire.request = slow
        await asyncio.sleep(1)
        early.wire.send("c")
        assert early.seen == ["a", "b", "c"]
        assert early.resets == 1

    tell(story)


def test_deliveries_are_read() -> None:
    plain = Message(subject="s", data=b"x", reply="$JS.ACK.st.co.1.17.5.1700000000.3")
    long = Message(subject="s", data=b"x", reply="$JS.ACK.dom.acc.st.co.1.17.5.1700000000.3.tok")
    for message in (plain, long):
        assert read_delivery(message) == Object(msgspec.structs.replace(message, pending=3), 5, 17)
    assert read_delivery(Message(subject="s", data=b"", headers={"Status": "100"})) == Heartbeat(None)
    ended = Message(subject="s", data=b"", headers={"Status": "409", "Description": "Consumer Deleted"})
    assert read_delivery(ended) == Ended("status 409 Consumer Deleted")
    with pytest.raises(ValueError, match="not a delivery"):
        read_delivery(Message(subject="s", data=b""))


class Node:
    """Copies of requests, fed by hand."""

    def __init__(self) -> None:
        self.copies = Copies(RECREATE_REQUEST, ContainerRecreateRequest)
        self.heard: list[str] = []
        self.copies.listen(lambda key: self.heard.append(key[1]))

    def tell(self, name: str, version: int, *, epoch: str = "e1", uid: str = "u", op: str = "ADDED") -> None:
        meta = {"name": name, "namespace": "x", "uid": uid, "resourceVersion": str(version)}
        headers = {subjects.OP: op, subjects.UID: uid, subjects.EPOCH: epoch}
        data = msgspec.json.encode({"metadata": meta})
        self.copies.receive(Message(subject=f"node.v1.n1.{PLURAL}.x.{name}", data=data, headers=headers))

    def mark(self, epoch: str = "e1", version: int = 100) -> None:
        marker = subjects.Marker(epoch=epoch, state=subjects.SYNCED, rv=str(version))
        subject = subjects.node_marker(RECREATE_REQUEST)
        self.copies.receive(Message(subject=subject, data=msgspec.json.encode(marker)))

    @property
    def names(self) -> list[str]:
        return [one.metadata.name for one in self.copies]


def test_copies_only_move_forward() -> None:
    node = Node()
    node.tell("a", 5)
    node.tell("a", 4)
    held = node.copies.get(("x", "a"))
    assert held is not None
    assert held.metadata.resource_version == "5"
    node.tell("a", 3, uid="other")
    assert node.heard == ["a", "a"], "a namesake is another object, whatever its version"


def test_what_a_complete_epoch_lacks_is_gone() -> None:
    node = Node()
    node.tell("a", 5)
    node.tell("b", 6)
    node.mark()
    node.tell("b", 6, epoch="e2")
    node.tell("c", 120, epoch="e1")
    node.mark("e2", 110)
    assert node.names == ["b", "c"], "what is newer than the epoch stays"


def test_a_tombstone_takes_only_its_own() -> None:
    node = Node()
    node.tell("a", 5, uid="new")
    node.tell("a", 6, uid="old", op="DELETED")
    assert node.names == ["a"]
    node.tell("a", 6, uid="new", op="DELETED")
    assert node.names == []
    node.tell("a", 7, uid="new")
    assert node.names == ["a"], "it may concern the node again"


def test_being_complete_is_told_for_everything() -> None:
    node = Node()
    node.tell("a", 5)
    assert not node.copies.synced
    node.heard.clear()
    node.mark()
    node.mark()
    assert node.copies.synced
    assert node.heard == ["a"]


def test_what_cannot_be_read_is_left_out() -> None:
    node = Node()
    node.copies.receive(Message(subject=f"node.v1.n1.{PLURAL}.x.bad", data=b'{"metadata":7}', headers={}))
    node.tell("a", 5)
    assert node.names == ["a"]
