"""The bus against a real nats-server: order, fencing, expiry, and the death of the server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.api.resources import POD
from flotilla_common.bus import nats as nats_module
from flotilla_common.bus import ordered, subjects
from flotilla_common.bus.interface import BusError, Message, PublishRefused, StreamSpec
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.ordered import OrderedFollow
from tests.support.broker import Broker, broker
from tests.support.cluster import eventually

SPEC = subjects.kube_stream(POD)
LASTING = StreamSpec(name="lasting", subjects=("lasting.>",), last_value=True)
ODD = StreamSpec(name="odd", subjects=("odd.>",), last_value=False, max_age_seconds=60, max_bytes=1 << 20)


def subject(name: str) -> str:
    return subjects.kube(POD, "default", name)


@pytest_asyncio.fixture
async def nats(tmp_path: Path) -> AsyncIterator[Broker]:
    async with broker(tmp_path) as running:
        yield running


@pytest_asyncio.fixture
async def bus(nats: Broker) -> AsyncIterator[NatsBus]:
    client = nats.bus()
    await client.ensure_stream(SPEC)
    yield client
    await client.close()


class Reader:
    """The messages and resets that a follow delivered."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.resets = 0

    def reset(self) -> None:
        self.resets += 1
        self.messages.clear()

    @property
    def last(self) -> dict[str, bytes]:
        return {message.subject: message.data for message in self.messages}


async def test_ensuring_a_stream_twice_and_changing_its_limits(bus: NatsBus) -> None:
    await bus.ensure_stream(SPEC)
    await bus.ensure_stream(ODD)
    await bus.ensure_stream(StreamSpec(name="odd", subjects=("odd.>",), last_value=False, max_age_seconds=30))
    assert (await bus.stream_state("odd")) is not None
    assert (await bus.stream_state("none")) is None


async def test_following_gives_the_last_message_of_each_subject_then_what_is_new(bus: NatsBus) -> None:
    for number in range(10):
        await bus.publish(subject(f"p{number % 3}"), str(number).encode(), {"rv": str(number)})
    reader = Reader()
    follow = await bus.follow(SPEC.name, (">",), reader.messages.append, reader.reset)
    await eventually(lambda: len(reader.messages) == 3)
    assert [message.data for message in reader.messages] == [b"7", b"8", b"9"]
    assert [message.pending for message in reader.messages] == [2, 1, 0]
    await bus.publish(subject("p0"), b"new", {"rv": "10"})
    await eventually(lambda: len(reader.messages) == 4)
    assert reader.messages[-1].headers["rv"] == "10"
    assert follow.healthy
    assert reader.resets == 0


async def test_a_stream_that_does_not_exist_yet_is_waited_for(nats: Broker) -> None:
    client, reader = nats.bus(), Reader()
    follow = await client.follow(SPEC.name, (">",), reader.messages.append, reader.reset)
    assert not follow.healthy
    await client.ensure_stream(SPEC)
    await client.publish(subject("a"), b"1")
    await eventually(lambda: follow.healthy and len(reader.messages) == 1)
    await client.close()


async def test_a_follow_that_waits_for_the_connection_begins_with_it(
    nats: Broker, bus: NatsBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not at its next look: a service that was killed would be late by that."""
    monkeypatch.setattr(ordered, "RETRY_SECONDS", 3600.0)
    await bus.publish(subject("p"), b"old")
    client, reader = nats.bus(), Reader()
    await client.follow(SPEC.name, (">",), reader.messages.append, reader.reset)
    await eventually(lambda: len(reader.messages) == 1)
    await client.close()


async def test_pipelined_messages_are_fenced_one_by_one(bus: NatsBus) -> None:
    sent = [await bus.send(subject(f"p{number}"), b"x", expect_last_sequence=number) for number in range(200)]
    assert await asyncio.gather(*sent) == list(range(1, 201))
    with pytest.raises(PublishRefused):
        await (await bus.send(subject("rival"), b"x", expect_last_sequence=7))
    broken = [await bus.send(subject(f"q{number}"), b"x", expect_last_sequence=199 + number) for number in range(3)]
    outcomes = await asyncio.gather(*broken, return_exceptions=True)
    assert all(isinstance(outcome, PublishRefused) for outcome in outcomes[:1])
    state = await bus.stream_state(SPEC.name)
    assert state is not None
    assert state.last_sequence <= 202


async def test_a_message_with_a_ttl_expires(bus: NatsBus) -> None:
    await (await bus.send(subject("gone"), b"x", ttl_seconds=1))
    await bus.publish(subject("stays"), b"x")
    found = await bus.get_last(SPEC.name, subject("gone"))
    assert found is not None
    assert found.data == b"x"
    reader = Reader()
    await asyncio.sleep(2.5)
    await bus.follow(SPEC.name, (">",), reader.messages.append, reader.reset)
    await eventually(lambda: bool(reader.messages))
    assert reader.last.keys() == await bus.stream_subjects(SPEC.name) == {subject("stays")}


async def test_a_subject_without_a_stream_and_a_body_beyond_the_limit_fail_clearly(bus: NatsBus) -> None:
    with pytest.raises(BusError, match="no responders"):
        await bus.publish("nobody.wants.this", b"x")
    with pytest.raises(BusError):
        await bus.publish(subject("big"), b"x" * (9 << 20))
    assert await bus.publish(subject("small"), b"x") == 1


async def test_requests(bus: NatsBus) -> None:
    async def greet(message: Message) -> bytes:
        return b"hello " + message.data

    async def fail(_: Message) -> bytes:
        raise ValueError("no\nway")

    await bus.serve("ask.greet", "q", greet)
    await bus.serve("ask.fail", "q", fail)
    assert await bus.request("ask.greet", b"you", 30) == b"hello you"
    with pytest.raises(BusError, match="no way"):
        await bus.request("ask.fail", b"", 30)
    with pytest.raises(BusError, match="no responders"):
        await bus.request("ask.nobody", b"", 30)


async def test_a_flood_of_requests_fills_a_bounded_queue_and_is_over_when_it_ends(
    nats: Broker, bus: NatsBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_module, "REQUESTS_WAITING", 10)
    asked: list[bytes] = []

    async def note(message: Message) -> bytes:
        asked.append(message.data)
        return b""

    await bus.serve("ask.flooded", "", note)
    flooder = nats.bus("flooder")
    await eventually(lambda: flooder.connected)
    for number in range(5000):  # they come in a few large reads
        flooder.publish_soon("ask.flooded", str(number).encode())
    await eventually(lambda: bool(asked))
    async with asyncio.timeout(30):
        while True:
            with contextlib.suppress(BusError):
                await bus.request("ask.flooded", b"after", 1)
                break
    assert len(asked) < 5000
    await flooder.close()


async def test_live_subscriptions_survive_a_restart_of_the_server(nats: Broker, bus: NatsBus) -> None:
    reader = Reader()
    await bus.subscribe("heartbeat.v1.>", reader.messages.append)
    bus.publish_soon("heartbeat.v1.watcher.a", b"1")
    await eventually(lambda: len(reader.messages) == 1)
    await nats.kill()
    bus.publish_soon("heartbeat.v1.watcher.a", b"lost")
    await nats.start()
    await eventually(lambda: bus.connected)
    bus.publish_soon("heartbeat.v1.watcher.a", b"2")
    await eventually(lambda: len(reader.messages) == 2)
    assert reader.messages[-1].data == b"2"


async def test_a_follow_goes_on_after_a_restart_without_a_reset(nats: Broker, bus: NatsBus) -> None:
    await bus.ensure_stream(LASTING)
    reader = Reader()
    follow = await bus.follow(LASTING.name, (">",), reader.messages.append, reader.reset)
    for number in range(50):
        await bus.publish(f"lasting.{number}", b"1")
    await eventually(lambda: len(reader.messages) == 50)
    await nats.kill()
    await eventually(lambda: not follow.healthy)
    with pytest.raises(BusError):
        await bus.publish("lasting.1", b"2")
    await nats.start()
    await eventually(lambda: follow.healthy)
    await bus.publish("lasting.1", b"3")
    await eventually(lambda: reader.last["lasting.1"] == b"3")
    assert (len(reader.messages), reader.resets) == (51, 0)


async def test_a_restart_keeps_the_records_and_forgets_what_is_rebuilt(nats: Broker, bus: NatsBus) -> None:
    for spec in subjects.RECORDS:
        await bus.ensure_stream(spec)
    kept = (subjects.act("cloneset", POD, "default", "web"), subjects.why(POD, "default", "web"))
    for one in (*kept, subject("web")):
        await bus.publish(one, b"1")
    await nats.kill()
    await nats.start()
    await eventually(lambda: bus.connected)
    last = [await bus.get_last(stream, ">") for stream in ("act", "why")]
    assert [message and message.subject for message in last] == list(kept)
    assert await bus.stream_state(SPEC.name) is None


async def test_a_stream_that_is_rebuilt_moves_from_disk_into_memory(nats: Broker, bus: NatsBus) -> None:
    """Releases that kept all streams on disk created it so."""
    odd = StreamSpec(name="moved", subjects=("moved.>",), last_value=True)
    await bus.ensure_stream(odd)
    await bus.publish("moved.1", b"1")
    await bus.ensure_stream(msgspec.structs.replace(odd, rebuilt=True))
    assert await bus.get_last("moved", "moved.1") is None
    await bus.publish("moved.1", b"2")
    await nats.kill()
    await nats.start()
    await eventually(lambda: bus.connected)
    assert await bus.stream_state("moved") is None


async def test_a_wiped_stream_is_noticed_and_read_from_its_start(nats: Broker, bus: NatsBus) -> None:
    reader = Reader()
    follow = await bus.follow(SPEC.name, (">",), reader.messages.append, reader.reset)
    await bus.publish(subject("old"), b"1")
    await eventually(lambda: len(reader.messages) == 1)
    await nats.wipe()
    other = nats.bus("other")
    await other.ensure_stream(SPEC)
    for number in range(5):
        await other.publish(subject(f"new{number}"), b"2")
    await eventually(lambda: follow.healthy and len(reader.messages) == 5)
    assert reader.resets == 1
    await other.close()


async def test_a_consumer_that_vanishes_is_replaced_without_loss(bus: NatsBus, nats: Broker) -> None:
    reader = Reader()
    follow = await bus.follow(SPEC.name, (">",), reader.messages.append, reader.reset)
    await bus.publish(subject("a"), b"1")
    await eventually(lambda: len(reader.messages) == 1 and follow.healthy)  # its name comes after its first message
    assert isinstance(follow, OrderedFollow)
    await bus._stream.delete_consumer(SPEC.name, follow._consumer)
    for number in range(20):
        await bus.publish(subject(f"b{number}"), b"2")
    await eventually(lambda: len(reader.messages) == 21)
    assert reader.resets == 0


async def test_a_paused_server_is_survived(nats: Broker, bus: NatsBus) -> None:
    reader = Reader()
    follow = await bus.follow(SPEC.name, (">",), reader.messages.append, reader.reset)
    await eventually(lambda: follow.healthy)
    await nats.pause()
    with pytest.raises(BusError):
        await bus.publish(subject("p"), b"1")
    nats.resume()
    await eventually(lambda: follow.healthy)
    await bus.publish(subject("p"), b"2")
    await eventually(lambda: reader.last.get(subject("p")) == b"2")


async def test_what_operators_set_on_a_stream_stays(bus: NatsBus) -> None:
    await bus.ensure_stream(ODD)
    config = (await bus._stream.stream_info("odd")).config
    await bus._stream._call("STREAM.UPDATE.odd", config | {"description": "mine", "max_age": 1_000_000_000}, dict)
    await bus.ensure_stream(ODD)
    config = (await bus._stream.stream_info("odd")).config
    assert (config["description"], config["max_age"], config["num_replicas"]) == ("mine", 60_000_000_000, 1)


async def test_a_message_that_cannot_be_handled_is_read_again(bus: NatsBus) -> None:
    got: list[bytes] = []

    def receive(message: Message) -> None:
        if message.data == b"2" and fails:
            fails.pop()
            raise KeyError("metadata")
        got.append(message.data)

    fails = [1, 1]
    follow = await bus.follow(SPEC.name, (">",), receive, got.clear)
    for number in (1, 2, 3):
        await bus.publish(subject(f"a{number}"), str(number).encode())
    await eventually(lambda: got == [b"1", b"2", b"3"])
    assert fails == []
    await eventually(lambda: follow.healthy)


async def test_a_stream_that_was_there_before_is_made_to_republish(bus: NatsBus) -> None:
    """The record of decisions in an installation of an older version."""
    await bus.ensure_stream(msgspec.structs.replace(subjects.WHY_STREAM, republish=None))
    await bus.publish("why.v1.clonesets.a.web", b"0")
    for spec in subjects.RECORDS:
        await bus.ensure_stream(spec)
    await asyncio.gather(*(bus.publish("why.v1.clonesets.a.web", b"%d" % number) for number in range(1, 501)))
    kept: list[bytes] = []

    async def all_are_kept() -> None:
        while len(kept) < 500:
            kept.clear()
            await bus.history("decisions", "decisions.v1.clonesets.a.web", lambda message: kept.append(message.data))

    await asyncio.wait_for(all_are_kept(), 20)
    assert sorted(map(int, kept)) == list(range(1, 501))  # also those replaced at once
    last = await bus.get_last("why", "why.v1.clonesets.a.web")
    assert last is not None
    assert last.data == kept[-1]
    assert last.stored_at > 0


async def test_what_was_stored_since_then_and_what_is_new_without_gap_or_repetition(bus: NatsBus) -> None:
    await bus.ensure_stream(ODD)
    await bus.publish("odd.a", b"before")
    since = datetime.now(UTC)
    heard: list[bytes] = []
    assert not await bus.follow_since("none", since, lambda message: None)
    assert not await bus.follow_since("odd", since + timedelta(seconds=60), lambda message: None)
    await bus.publish("odd.a", b"1")
    await bus.publish("odd.b", b"2")
    assert await bus.follow_since("odd", since, lambda message: heard.append(message.data))
    await eventually(lambda: heard == [b"1", b"2"])
    await bus.publish("odd.a", b"3")
    await eventually(lambda: heard == [b"1", b"2", b"3"])
    past: list[Message] = []
    await bus.history("odd", "odd.a", past.append, since=since)
    assert [message.data for message in past] == [b"1", b"3"]
    assert abs(past[0].stored_at - since.timestamp()) < 60


async def test_sizes_are_known_without_the_payloads(bus: NatsBus) -> None:
    await bus.ensure_stream(ODD)
    await bus.publish("odd.a", b"x" * 1000)
    found: list[Message] = []
    await bus.history("odd", ">", found.append, headers_only=True)
    assert [(message.data, message.headers["Nats-Msg-Size"]) for message in found] == [(b"", "1000")]
