"""Agents request to read, and the publishing replica serves them until they stop reading."""

import asyncio
from typing import Any, cast

import msgspec
import pytest

from flotilla_common.api.resources import POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError
from flotilla_common.bus.pod_shards import pod_shard
from flotilla_common.node.reports import FOLLOW, FollowAnswer, FollowRequest
from flotilla_watcher import readers as node_readers
from flotilla_watcher.node_copies import NodeCopies, NotComplete
from flotilla_watcher.readers import COUNT_SECONDS, RETIRE_SECONDS, follow_readers, proper_inbox, serve_node_readers
from flotilla_watcher.writer import StreamLost, Superseded
from tests.simulation.loop import SimulatedClock, SimulatedLoop, run
from tests.support.fake_bus import FakeBus

STREAM = subjects.node_stream(POD).name
INBOX = "_INBOX_node.n1.x"


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


class Copies:
    """Serves nodes, or fails to."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.served: set[str] = set()
        self.retired: list[tuple[str, float]] = []

    async def serve(self, node: str) -> None:
        if self.failure is not None:
            raise self.failure
        self.served.add(node)

    async def retire(self, node: str, since: float) -> None:
        self.served.discard(node)
        self.retired.append((node, since))


async def asked(publishing: dict[Resource, NodeCopies], bus: FakeBus, plural: str = "pods") -> FollowAnswer:
    bus.inbox = subjects.node_inbox("n1")
    await bus.ensure_stream(subjects.node_stream(POD))
    await serve_node_readers(bus, publishing)
    request = FollowRequest(plural=plural, inbox=INBOX, created=bus.streams[STREAM].created, last_sequence=7)
    subject = subjects.report("n1", FOLLOW, "", "anything")
    return msgspec.json.decode(await bus.request(subject, msgspec.json.encode(request), 1), type=FollowAnswer)


async def test_a_reader_gets_its_nodes_copies_and_marker_once_they_are_there() -> None:
    bus, copies = FakeBus(), Copies()
    answer = await asked({POD: copies}, bus)
    assert (answer.accepted, answer.resumed, answer.created) == (True, True, bus.streams[STREAM].created)
    assert copies.served == {"n1"}
    assert bus.deliveries == {(STREAM, INBOX): ("node.v1.n1.pods", "node.v1.n1.pods.>")}
    assert bus.readers == {(STREAM, "n1"): INBOX}


async def test_a_reader_gets_the_copies_of_each_shard_from_its_publisher() -> None:
    bus, first, second = FakeBus(), Copies(), Copies()
    await bus.ensure_stream(subjects.node_stream(pod_shard(1)))
    assert (await asked({POD: first, pod_shard(1): second}, bus, "pods-1")).accepted
    assert (first.served, second.served) == (set(), {"n1"})
    assert bus.deliveries == {("node_pods-1", INBOX): ("node.v1.n1.pods-1", "node.v1.n1.pods-1.>")}
    with pytest.raises(BusError, match="no responders"):
        await asked({POD: first}, FakeBus(), "pods-1")


@pytest.mark.parametrize("plural", ["secrets", "nodes", ""])
async def test_nodes_read_nothing_else(plural: str) -> None:
    answer = await asked({POD: Copies()}, FakeBus(), plural)
    assert (answer.accepted, answer.again) == (False, False)


async def test_a_replica_that_does_not_publish_the_resource_is_silent() -> None:
    with pytest.raises(BusError, match="no responders"):
        await asked({}, FakeBus())


@pytest.mark.parametrize("failure", [NotComplete(), StreamLost("lost"), Superseded("by another"), BusError("away")])
async def test_what_cannot_be_served_now_is_asked_for_again(failure: Exception) -> None:
    bus = FakeBus()
    answer = await asked({POD: Copies(failure)}, bus)
    assert (answer.accepted, answer.again) == (False, True)
    assert bus.deliveries == {}


async def test_a_node_does_not_have_its_copies_sent_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_readers, "FOLLOWS", 2)
    monkeypatch.setattr(node_readers, "FOLLOWS_PER_SECOND", 0.0)
    bus = FakeBus()
    assert (await asked({POD: Copies()}, bus)).accepted
    request = msgspec.json.encode(FollowRequest(plural="pods", inbox=INBOX))
    subject = subjects.report("n1", FOLLOW, "", "pods")
    answers = [msgspec.json.decode(await bus.request(subject, request, 1), type=FollowAnswer) for _ in range(3)]
    assert [(answer.accepted, answer.again) for answer in answers] == [(True, False), (False, True), (False, True)]


class Story:
    """Readers are counted in simulated time."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.bus = FakeBus()
        self.copies = Copies()
        self.clock = SimulatedClock(loop)
        counting = follow_readers(cast("Bus", self.bus), self.clock, POD, cast("NodeCopies", self.copies))
        self.task = loop.create_task(counting)

    def read(self, node: str) -> None:
        self.bus.deliveries[STREAM, subjects.node_inbox(node) + ".x"] = ()

    def leave(self, node: str) -> None:
        del self.bus.deliveries[STREAM, subjects.node_inbox(node) + ".x"]


def told(story: Any) -> None:
    async def main(loop: SimulatedLoop) -> None:
        await story(Story(loop))

    run(main)


def test_who_reads_is_served_even_if_his_asking_was_lost() -> None:
    async def story(it: Story) -> None:
        it.read("n.example")
        it.bus.deliveries[STREAM, "_INBOX.somebody"] = ()
        it.bus.deliveries["other", "_INBOX_node.n2.x"] = ()
        await asyncio.sleep(COUNT_SECONDS + 1)
        assert it.copies.served == {"n.example"}

    told(story)


def test_who_reads_no_more_is_retired_after_a_while() -> None:
    async def story(it: Story) -> None:
        it.read("n1")
        it.read("n2")
        await asyncio.sleep(COUNT_SECONDS + 1)
        it.leave("n1")
        await asyncio.sleep(RETIRE_SECONDS)
        assert it.copies.served == {"n1", "n2"}
        await asyncio.sleep(COUNT_SECONDS)
        assert it.copies.served == {"n2"}
        assert it.copies.retired == [("n1", 2 * COUNT_SECONDS)], "and since when"

    told(story)


def test_an_absence_is_forgiven() -> None:
    async def story(it: Story) -> None:
        it.read("n1")
        await asyncio.sleep(COUNT_SECONDS + 1)
        for _ in range(5):
            it.leave("n1")
            await asyncio.sleep(RETIRE_SECONDS - COUNT_SECONDS)
            it.read("n1")
            await asyncio.sleep(COUNT_SECONDS)
        assert it.copies.retired == []

    told(story)


def test_a_bus_that_is_away_is_no_absence() -> None:
    async def story(it: Story) -> None:
        it.read("n1")
        await asyncio.sleep(COUNT_SECONDS + 1)
        it.bus.connected = False
        await asyncio.sleep(2 * RETIRE_SECONDS)
        it.bus.connected = True
        await asyncio.sleep(2 * COUNT_SECONDS)
        assert it.copies.retired == []
        assert not it.task.done()

    told(story)
