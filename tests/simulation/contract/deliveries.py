"""The contract of deliveries to an inbox (`Bus.deliver`), for node agents and the watcher.

The reader has no right to JetStream: it sees numbers, sequences and heartbeats in the messages themselves, here through
the agent's own `read_delivery`. Heartbeats and the timeout of unused deliveries are short, for both sides alike.
"""

import asyncio
from collections.abc import Sequence

import pytest

from flotilla_common.api.resources import POD
from flotilla_common.bus import jetstream, subjects
from flotilla_common.bus.interface import Bus, BusError, Delivery, Follow
from flotilla_nodeagent.reader import Ended, Heartbeat, Object, read_delivery
from tests.simulation.contract.bus import Harness, Play, Reader, eventually

SPEC = subjects.node_stream(POD)
FILTERS = (subjects.node_marker(POD, "n1"), subjects.node_filter("n1", POD))
INBOX = subjects.node_inbox("n1") + ".x1"

HEARTBEAT_SECONDS = 0.4
INACTIVE_SECONDS = 2.0
SILENCE_SECONDS = 3 * HEARTBEAT_SECONDS


def copy(name: str, node: str = "n1") -> str:
    """Return the subject of a node's copy of a pod."""
    return subjects.node_object(node, POD, "default", name)


class Inbox(Reader):
    """The messages that came to an inbox."""

    @property
    def objects(self) -> list[Object]:
        read = map(read_delivery, self.messages)
        return [one for one in read if isinstance(one, Object)]

    @property
    def bodies(self) -> list[bytes]:
        return [one.message.data for one in self.objects]

    @property
    def numbers(self) -> list[int]:
        return [one.number for one in self.objects]

    @property
    def sequences(self) -> list[int]:
        return [one.sequence for one in self.objects]

    @property
    def heartbeats(self) -> list[int | None]:
        """Return the number of sent messages in each heartbeat."""
        read = map(read_delivery, self.messages)
        return [one.sent for one in read if isinstance(one, Heartbeat)]

    @property
    def ended(self) -> bool:
        return any(isinstance(read_delivery(message), Ended) for message in self.messages)


class Post:
    """A server with copies for nodes; `bus` is the watcher's client, `agent` the reader's."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.bus: Bus = harness.bus("watcher")
        self.agent: Bus = harness.bus("agent")

    async def store(self, *bodies: bytes, name: str = "", node: str = "n1") -> None:
        """Store copies of one pod, or one per body."""
        for body in bodies:
            await self.bus.publish(copy(name or body.decode(), node), body)

    async def listen(self, inbox: str = INBOX) -> tuple[Inbox, Follow]:
        """Subscribe to the inbox. Returns when the server has the subscription."""
        reader = Inbox()
        follow = await self.agent.subscribe(inbox, reader.messages.append)
        await eventually(lambda: follow.healthy)
        await self.agent.stream_state(SPEC.name)
        return reader, follow

    async def leave(self, follow: Follow) -> None:
        """Unsubscribe. Returns when the server has handled it."""
        await follow.stop()
        await self.agent.stream_state(SPEC.name)

    async def deliver(
        self,
        inbox: str = INBOX,
        filters: Sequence[str] = FILTERS,
        *,
        reader: str = "n1",
        created: str = "",
        after: int = 0,
    ) -> Delivery:
        return await self.bus.deliver(SPEC.name, reader, filters, inbox, created=created, after=after)

    async def delivering(self) -> set[str]:
        return await self.bus.delivering(SPEC.name)


async def post(harness: Harness, *bodies: bytes) -> Post:
    """With a stream, and a copy per body."""
    made = Post(harness)
    await made.bus.ensure_stream(SPEC)
    await made.store(*bodies)
    return made


class DeliveryContract:
    """To be run for every implementation: a subclass brings the fixture `play`."""

    @pytest.fixture(autouse=True)
    def quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(jetstream, "DELIVERY_HEARTBEAT_SECONDS", HEARTBEAT_SECONDS)
        monkeypatch.setattr(jetstream, "DELIVERY_INACTIVE_SECONDS", INACTIVE_SECONDS)

    def test_a_delivery_begins_with_the_last_message_of_each_subject(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            it = await post(harness)
            for number in range(10):
                await it.store(str(number).encode(), name=f"p{number % 3}")
            reader, _ = await it.listen()
            state = await it.bus.stream_state(SPEC.name)
            assert state is not None
            assert await it.deliver() == Delivery(state.created, resumed=False)
            await eventually(lambda: len(reader.objects) == 3)
            assert reader.bodies == [b"7", b"8", b"9"]
            assert reader.sequences == [8, 9, 10]
            assert reader.numbers == [1, 2, 3]
            assert [one.message.pending for one in reader.objects] == [2, 1, 0]
            assert [one.message.subject for one in reader.objects] == [copy("p1"), copy("p2"), copy("p0")]

        play(exchange)

    def test_what_is_published_later_comes_once_and_in_order(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            it = await post(harness, b"a")
            reader, _ = await it.listen()
            await it.deliver()
            await it.bus.publish(copy("b"), b"b", {"rv": "7"})
            await it.store(*(str(number).encode() for number in range(20)))
            await eventually(lambda: len(reader.objects) == 22)
            await asyncio.sleep(HEARTBEAT_SECONDS)
            assert reader.bodies == [b"a", b"b", *(str(number).encode() for number in range(20))]
            assert reader.numbers == reader.sequences == list(range(1, 23))
            assert reader.objects[1].message.headers["rv"] == "7"
            assert reader.objects[-1].message.pending == 0

        play(exchange)

    def test_a_delivery_has_what_its_filters_let_through(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            it = await post(harness)
            await it.store(b"other", node="n2")
            await it.store(b"mine")
            await it.bus.publish(FILTERS[0], b"marker")
            await it.store(b"another", node="n2")
            reader, _ = await it.listen()
            await it.deliver()
            await eventually(lambda: len(reader.objects) == 2)  # what is replaced before it is sent is never sent
            await it.store(b"third", node="n2")
            await it.store(b"second")
            await it.bus.publish(FILTERS[0], b"marker")
            await eventually(lambda: len(reader.objects) == 4)
            assert reader.bodies == [b"mine", b"marker", b"second", b"marker"]
            assert reader.numbers == [1, 2, 3, 4]
            assert reader.sequences == [2, 3, 6, 7]
            assert [one.message.pending for one in reader.objects] == [1, 0, 0, 0]

        play(exchange)

    def test_a_reader_goes_on_from_where_it_was(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            it = await post(harness, b"a", b"b")
            state = await it.bus.stream_state(SPEC.name)
            assert state is not None
            await it.store(b"c", b"d")
            reader, _ = await it.listen()
            assert await it.deliver(created=state.created, after=2) == Delivery(state.created, resumed=True)
            await eventually(lambda: len(reader.objects) == 2)
            assert (reader.bodies, reader.numbers, reader.sequences) == ([b"c", b"d"], [1, 2], [3, 4])
            assert [one.message.pending for one in reader.objects] == [1, 0]
            late, _ = await it.listen(INBOX + "2")
            assert (await it.deliver(INBOX + "2", created=state.created, after=4)).resumed
            await it.store(b"e")
            await eventually(lambda: len(late.objects) == 1)
            assert (late.bodies, late.numbers, late.sequences) == ([b"e"], [1], [5])

        play(exchange)

    def test_a_reader_of_another_stream_begins_anew(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            it = await post(harness, b"a", b"b")
            state = await it.bus.stream_state(SPEC.name)
            assert state is not None
            for created, after in (("2020-01-01T00:00:00Z", 1), (state.created, 3)):
                reader, follow = await it.listen()
                assert await it.deliver(created=created, after=after) == Delivery(state.created, resumed=False)
                await eventually(lambda reader=reader: len(reader.objects) == 2)
                assert reader.bodies == [b"a", b"b"]
                await follow.stop()

        play(exchange)

    def test_the_next_delivery_of_a_reader_ends_the_last_one_and_no_others(self, play: Play) -> None:
        """A node cannot fill the bus with deliveries.

        Messages of the last one in flight still arrive, so a reader takes a fresh inbox for each request.
        """

        async def exchange(harness: Harness) -> None:
            it = await post(harness, b"a")
            first, _ = await it.listen()
            second, _ = await it.listen(INBOX + "2")
            other, _ = await it.listen(INBOX + "3")
            await it.deliver()
            await it.deliver(INBOX + "3", reader="n2")
            await eventually(lambda: len(first.objects) == len(other.objects) == 1)
            for _ in range(3):
                await it.deliver(INBOX + "2")
            assert await it.delivering() == {INBOX + "2", INBOX + "3"}
            await it.store(b"b")
            await eventually(lambda: second.bodies[-1:] == other.bodies[-1:] == [b"b"])
            assert (second.bodies.count(b"b"), first.bodies) == (1, [b"a"])
            assert (other.bodies, other.numbers) == ([b"a", b"b"], [1, 2])

        play(exchange)

    def test_heartbeats_tell_how_much_was_sent(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            it = await post(harness)
            reader, _ = await it.listen()
            await it.deliver()
            await eventually(lambda: len(reader.heartbeats) >= 2)
            assert set(reader.heartbeats) == {0}
            await it.store(b"a", b"b")
            await it.store(b"other", node="n2")
            await eventually(lambda: reader.heartbeats[-2:] == [2, 2])
            assert not reader.ended

        play(exchange)

    def test_a_gap_shows_in_the_next_number_and_in_heartbeats(self, play: Play) -> None:
        """A reader that subscribes late, or misses a moment, sees the gap, and does not get the messages again."""

        async def exchange(harness: Harness) -> None:
            it = await post(harness, b"a")
            stranger, _ = await it.listen(INBOX)  # somebody listens: for the server that is enough
            await it.deliver()
            await eventually(lambda: len(stranger.objects) == 1)
            reader, _ = await it.listen()
            await eventually(lambda: len(reader.heartbeats) >= 1)
            assert (reader.bodies, reader.heartbeats[0]) == ([], 1)
            await it.store(b"b")
            await eventually(lambda: len(reader.objects) == 1)
            assert (reader.bodies, reader.numbers) == ([b"b"], [2])

        play(exchange)

    def test_a_delivery_waits_for_somebody_who_listens(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            it = await post(harness, b"a")
            await it.deliver()
            await it.store(b"b")
            assert await it.delivering() == {INBOX}
            reader, follow = await it.listen()
            await eventually(lambda: len(reader.objects) == 2)
            await it.leave(follow)
            await it.store(b"c")
            back, _ = await it.listen()
            await eventually(lambda: bool(back.messages))  # at once, not with the next heartbeat
            assert (reader.bodies, reader.numbers) == ([b"a", b"b"], [1, 2])
            assert (back.bodies, back.numbers) == ([b"c"], [3])
            await asyncio.sleep(INACTIVE_SECONDS * 1.5)
            assert await it.delivering() == {INBOX}

        play(exchange)

    def test_what_nobody_listens_to_ends(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            it = await post(harness, b"a")
            _, follow = await it.listen()
            await it.deliver()
            await it.deliver(INBOX + "2", reader="n2")
            await it.leave(follow)
            for _ in range(100):
                if not await it.delivering():
                    break
                await asyncio.sleep(INACTIVE_SECONDS / 10)
            reader, _ = await it.listen()
            await it.store(b"b")
            await asyncio.sleep(SILENCE_SECONDS)
            assert reader.messages == []
            assert await it.delivering() == set()

        play(exchange)

    def test_deliveries_end_with_their_server(self, play: Play) -> None:
        """Their readers reconnect soon, and receive nothing: neither objects nor heartbeats."""

        async def exchange(harness: Harness) -> None:
            it = await post(harness, b"a")
            reader, _ = await it.listen()
            before = await it.deliver()
            await eventually(lambda: len(reader.objects) == 1)
            await harness.kill()
            await eventually(lambda: not it.bus.connected and not it.agent.connected)
            with pytest.raises(BusError):
                await it.delivering()
            with pytest.raises(BusError):
                await it.deliver()
            await harness.start()
            await eventually(lambda: it.bus.connected and it.agent.connected)
            await it.bus.ensure_stream(SPEC)
            assert await it.delivering() == set()
            reader.messages.clear()
            await it.store(b"b")
            await asyncio.sleep(SILENCE_SECONDS)
            assert reader.messages == []
            again, _ = await it.listen(INBOX + "2")
            anew = await it.deliver(INBOX + "2", created=before.created, after=1)
            assert anew.created != before.created
            assert not anew.resumed
            await eventually(lambda: again.bodies == [b"b"])

        play(exchange)

    @pytest.mark.parametrize("wiped", [True, False], ids=["a wiped bus", "a removed stream"])
    def test_deliveries_end_with_their_stream(self, play: Play, wiped: bool) -> None:
        async def exchange(harness: Harness) -> None:
            it = await post(harness, b"a")
            reader, _ = await it.listen()
            before = await it.deliver()
            await eventually(lambda: len(reader.objects) == 1)
            if wiped:
                await harness.kill()
                await eventually(lambda: not it.bus.connected and not it.agent.connected)
                await harness.wipe()
                await eventually(lambda: it.bus.connected and it.agent.connected)
            else:
                await harness.delete_stream(SPEC.name)
            with pytest.raises(BusError):
                await it.delivering()
            with pytest.raises(BusError):
                await it.deliver()
            await it.bus.ensure_stream(SPEC)
            assert await it.delivering() == set()
            await asyncio.sleep(HEARTBEAT_SECONDS)
            reader.messages.clear()
            await it.store(b"b", b"c")
            await asyncio.sleep(SILENCE_SECONDS)
            assert reader.messages == []
            again, _ = await it.listen(INBOX + "2")
            after = await it.deliver(INBOX + "2", created=before.created, after=1)
            assert (after.created != before.created, after.resumed) == (True, False)
            await eventually(lambda: again.bodies == [b"b", b"c"])

        play(exchange)

    def test_a_short_standstill_of_the_server_delays_but_loses_nothing(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            it = await post(harness, b"a")
            reader, _ = await it.listen()
            await it.deliver()
            await eventually(lambda: len(reader.objects) == 1)
            await harness.pause()
            sent = await it.bus.send(copy("b"), b"b")
            await asyncio.sleep(HEARTBEAT_SECONDS)
            assert reader.bodies == [b"a"]
            await harness.resume()
            assert await sent == 2
            await eventually(lambda: reader.bodies == [b"a", b"b"])
            await eventually(lambda: reader.heartbeats[-1:] == [2])
            assert reader.numbers == [1, 2]

        play(exchange)
