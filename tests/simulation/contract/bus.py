"""The contract of a bus, as one class of tests: for the simulated one and for a real nats-server.

Where they differ, the simulated one is wrong. The loop of a test may be real or simulated, so tests wait by condition
and by `asyncio.sleep`, never by the wall clock.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import pytest

from flotilla_common.api.resources import POD
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError, Message, PublishRefused, StreamSpec

SPEC = subjects.kube_stream(POD)
LASTING = StreamSpec(name="lasting", subjects=("lasting.>",), last_value=True)
LOG = StreamSpec(name="odd", subjects=("odd.>",), last_value=False, max_age_seconds=60, max_bytes=1 << 20)
TIMEOUT_SECONDS = 20.0
"""Seconds until an expected event counts as missing; the slowest is the timeout of a stalled server."""

REPLY_SECONDS = 5.0
"""Seconds after which a reply counts as lost, on a connection that holds."""

POLL_SECONDS = 0.02


class Harness(Protocol):
    """A server that a test may hurt, and clients of it."""

    def bus(self, name: str) -> Bus:
        """Return a client with a connection of its own."""
        ...

    async def kill(self) -> None:
        """kill -9."""
        ...

    async def start(self) -> None:
        """Start again what was killed."""
        ...

    async def wipe(self) -> None:
        """Kill, remove everything that was stored, start."""
        ...

    async def pause(self) -> None:
        """SIGSTOP."""
        ...

    async def resume(self) -> None:
        """SIGCONT."""
        ...

    async def delete_stream(self, name: str) -> None:
        """Somebody removes a stream."""
        ...


Exchange = Callable[[Harness], Awaitable[None]]
Play = Callable[[Exchange], None]
"""Runs a test on a fresh harness."""


class Reader:
    """The messages that a follow delivered."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.resets = 0

    def reset(self) -> None:
        self.resets += 1
        self.messages.clear()

    @property
    def data(self) -> list[bytes]:
        return [message.data for message in self.messages]


def pod(name: str) -> str:
    """Return the subject of a pod."""
    return subjects.kube(POD, "default", name)


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until it holds."""
    for _ in range(int(TIMEOUT_SECONDS / POLL_SECONDS)):
        if condition():
            return
        await asyncio.sleep(POLL_SECONDS)
    raise TimeoutError


async def with_stream(harness: Harness, name: str = "one") -> Bus:
    """Create a client, and the stream of pods."""
    bus = harness.bus(name)
    await bus.ensure_stream(SPEC)
    return bus


class BusContract:
    """To be run for every implementation: a subclass brings the fixture `play`."""

    def test_a_follow_begins_with_the_last_message_of_each_subject(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus, reader = await with_stream(harness), Reader()
            for number in range(10):
                await bus.publish(pod(f"p{number % 3}"), str(number).encode(), {"rv": str(number)})
            follow = await bus.follow(SPEC.name, (">",), reader.messages.append, reader.reset)
            await eventually(lambda: len(reader.messages) == 3)
            assert reader.data == [b"7", b"8", b"9"]
            assert [message.pending for message in reader.messages] == [2, 1, 0]
            assert [message.sequence for message in reader.messages] == [8, 9, 10]
            await bus.publish(pod("p0"), b"new", {"rv": "10"})
            await eventually(lambda: len(reader.messages) == 4)
            assert (reader.messages[-1].headers["rv"], reader.messages[-1].pending) == ("10", 0)
            assert (follow.healthy, reader.resets) == (True, 0)

        play(exchange)

    def test_every_follow_gets_everything_that_it_asked_for_in_order(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus, other = await with_stream(harness), harness.bus("other")
            everything, some, live = Reader(), Reader(), Reader()
            follows = [
                await other.follow(SPEC.name, (">",), everything.messages.append, everything.reset),
                await bus.follow(SPEC.name, (pod("b"), pod("c")), some.messages.append, some.reset),
                await other.subscribe("kube.v1.core.pods.*.b", live.messages.append),
            ]
            await eventually(lambda: all(follow.healthy for follow in follows))
            for number in range(30):
                await bus.publish(pod("ab"[number % 2]), str(number).encode())
            await eventually(lambda: len(everything.messages) == 30)
            await eventually(lambda: len(some.messages) == len(live.messages) == 15)
            assert everything.data == [str(number).encode() for number in range(30)]
            assert some.data == live.data == [str(number).encode() for number in range(1, 30, 2)]

        play(exchange)

    def test_a_stopped_follow_delivers_nothing_more(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus, stopped, going = await with_stream(harness), Reader(), Reader()
            follow = await bus.follow(SPEC.name, (">",), stopped.messages.append, stopped.reset)
            await bus.follow(SPEC.name, (">",), going.messages.append, going.reset)
            await bus.publish(pod("a"), b"1")
            await eventually(lambda: stopped.data == going.data == [b"1"])
            await follow.stop()
            await follow.stop()
            await bus.publish(pod("a"), b"2")
            await eventually(lambda: len(going.messages) == 2)
            assert stopped.data == [b"1"]

        play(exchange)

    def test_a_stream_that_does_not_exist_yet_is_waited_for(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus, reader = harness.bus("one"), Reader()
            follow = await bus.follow(SPEC.name, (">",), reader.messages.append, reader.reset)
            await asyncio.sleep(0.3)
            assert not follow.healthy
            await bus.ensure_stream(SPEC)
            await bus.publish(pod("a"), b"1")
            await eventually(lambda: follow.healthy and len(reader.messages) == 1)
            assert reader.resets == 0

        play(exchange)

    def test_pipelined_messages_are_fenced_one_by_one(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus = await with_stream(harness)
            sent = [await bus.send(pod(f"p{number}"), b"x", expect_last_sequence=number) for number in range(50)]
            assert [await one for one in sent] == list(range(1, 51))
            with pytest.raises(PublishRefused):
                await (await bus.send(pod("rival"), b"x", expect_last_sequence=7))
            assert await bus.get_last(SPEC.name, pod("rival")) is None
            broken = [await bus.send(pod(f"q{number}"), b"x", expect_last_sequence=49 + number) for number in range(3)]
            outcomes = await asyncio.gather(*broken, return_exceptions=True)
            assert isinstance(outcomes[0], PublishRefused)
            assert outcomes[1:] == [51, 52]  # the next ones fit again: see flotilla_watcher.writer
            state = await bus.stream_state(SPEC.name)
            assert state is not None
            assert state.last_sequence == 52

        play(exchange)

    def test_what_a_stream_tells_of_itself(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus = await with_stream(harness)
            for name in ("a", "b", "a"):
                await bus.publish(pod(name), name.encode(), {"rv": "5"})
            state = await bus.stream_state(SPEC.name)
            await bus.ensure_stream(SPEC)
            assert state is not None
            assert state == await bus.stream_state(SPEC.name)
            assert state.last_sequence == 3
            assert await bus.stream_subjects(SPEC.name) == {pod("a"), pod("b")}
            last = await bus.get_last(SPEC.name, pod("a"))
            assert last is not None
            assert (last.data, last.sequence, last.headers["rv"]) == (b"a", 3, "5")
            assert await bus.stream_state("none") is None
            assert await bus.get_last("none", "none") is None
            with pytest.raises(BusError):
                await bus.stream_subjects("none")

        play(exchange)

    def test_a_stream_with_limits_keeps_all_messages_within_them(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus, held, nothing = harness.bus("one"), Reader(), Reader()
            await bus.ensure_stream(LOG)
            for number in range(4):
                await bus.publish("odd.a", str(number).encode())
            await bus.history(LOG.name, "odd.>", held.messages.append)
            assert held.data == [b"0", b"1", b"2", b"3"]
            await bus.history(LOG.name, "odd.b", nothing.messages.append)
            await bus.history("none", ">", nothing.messages.append)
            assert not nothing.messages
            for _ in range(12):
                await bus.publish("odd.big", bytes(100_000))
            held.reset()
            await bus.history(LOG.name, ">", held.messages.append)
            assert len(held.messages) == 10
            assert held.messages[-1].sequence == 16

        play(exchange)

    def test_a_message_with_a_ttl_expires(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus, reader = await with_stream(harness), Reader()
            await (await bus.send(pod("gone"), b"x", ttl_seconds=1))
            await bus.publish(pod("stays"), b"x")
            assert await bus.get_last(SPEC.name, pod("gone")) is not None
            await asyncio.sleep(2.5)
            await bus.follow(SPEC.name, (">",), reader.messages.append, reader.reset)
            await eventually(lambda: bool(reader.messages))
            assert [message.subject for message in reader.messages] == [pod("stays")]
            assert await bus.stream_subjects(SPEC.name) == {pod("stays")}
            state = await bus.stream_state(SPEC.name)
            assert state is not None
            assert state.last_sequence == 2

        play(exchange)

    def test_what_no_stream_takes_and_what_is_too_large_is_refused(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus = await with_stream(harness)
            with pytest.raises(BusError, match="no responders"):
                await bus.publish("nobody.wants.this", b"x")
            with pytest.raises(BusError):
                await bus.publish(pod("big"), bytes(9 << 20))
            with pytest.raises(BusError, match="invalid subject"):
                await bus.publish(pod("a") + " b", b"x")
            assert await bus.publish(pod("small"), b"x") == 1

        play(exchange)

    def test_requests_are_answered_once_per_queue(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus, other, asked = harness.bus("one"), harness.bus("two"), list[bytes]()

            async def greet(message: Message) -> bytes:
                asked.append(message.data)
                return b"hello " + message.data

            async def fail(_: Message) -> bytes:
                raise ValueError("no\nway")

            async def leave(_: Message) -> None:
                return None

            for server in (bus, other):
                await server.serve("ask.greet.*", "q", greet)
            await bus.serve("ask.fail", "q", fail)
            await bus.serve("ask.leave", "q", leave)
            await eventually(lambda: bus.connected and other.connected)
            await asyncio.sleep(0.2)
            assert await bus.request("ask.greet.a", b"you", 2) == b"hello you"
            assert asked == [b"you"]
            with pytest.raises(BusError, match="no way"):
                await other.request("ask.fail", b"", 2)
            with pytest.raises(BusError, match="no responders"):
                await bus.request("ask.nobody", b"", 2)
            with pytest.raises(BusError, match="no reply"):
                await other.request("ask.leave", b"", 1)

        play(exchange)

    def test_live_subscriptions_survive_a_restart_and_miss_what_came_meanwhile(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus, reader = harness.bus("one"), Reader()
            await bus.subscribe("heartbeat.v1.>", reader.messages.append)
            await eventually(lambda: bus.connected)
            await asyncio.sleep(0.2)
            bus.publish_soon("heartbeat.v1.watcher.a", b"1")
            await eventually(lambda: len(reader.messages) == 1)
            await harness.kill()
            await eventually(lambda: not bus.connected)
            bus.publish_soon("heartbeat.v1.watcher.a", b"lost")
            await harness.start()
            await eventually(lambda: bus.connected)
            bus.publish_soon("heartbeat.v1.watcher.a", b"2")
            await eventually(lambda: len(reader.messages) == 2)
            assert reader.data == [b"1", b"2"]

        play(exchange)

    def test_a_follow_goes_on_after_a_restart_without_loss_or_repetition(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus, reader = await with_stream(harness), Reader()
            await bus.ensure_stream(LASTING)
            follow = await bus.follow(LASTING.name, (">",), reader.messages.append, reader.reset)
            for number in range(20):
                await bus.publish(f"lasting.{number}", b"1")
            await eventually(lambda: len(reader.messages) == 20)
            before = await bus.stream_state(LASTING.name)
            await harness.kill()
            await eventually(lambda: not follow.healthy)
            with pytest.raises(BusError):
                await bus.publish("lasting.1", b"2")
            with pytest.raises(BusError):
                await bus.stream_state(LASTING.name)
            await harness.start()
            await eventually(lambda: follow.healthy)
            assert before == await bus.stream_state(LASTING.name)
            await bus.publish("lasting.1", b"3")
            await eventually(lambda: reader.data[-1] == b"3")
            assert (len(reader.messages), reader.resets) == (21, 0)

        play(exchange)

    def test_a_restart_forgets_a_stream_that_is_rebuilt(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus, reader = await with_stream(harness), Reader()
            await bus.ensure_stream(LASTING)
            follow = await bus.follow(SPEC.name, (">",), reader.messages.append, reader.reset)
            await bus.publish(pod("old"), b"1")
            await eventually(lambda: len(reader.messages) == 1)
            await harness.kill()
            await eventually(lambda: not bus.connected)
            await harness.start()
            await eventually(lambda: bus.connected)
            assert await bus.stream_state(LASTING.name) is not None
            assert await bus.stream_state(SPEC.name) is None
            await bus.ensure_stream(SPEC)
            await bus.publish(pod("new"), b"2")
            await eventually(lambda: follow.healthy and reader.data == [b"2"])
            assert reader.resets == 1

        play(exchange)

    def test_the_oldest_message_of_a_stream(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus = await with_stream(harness)
            for name in ("a", "b", "a"):
                await bus.publish(pod(name), b"1")
            state = await bus.stream_state(SPEC.name)
            assert state is not None
            assert (state.first_sequence, state.last_sequence) == (2, 3)

        play(exchange)

    def test_an_old_message_moves_to_the_end_of_its_stream(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus = harness.bus("one")
            await bus.ensure_stream(LASTING)
            for name in "abbb":
                await bus.publish(f"lasting.{name}", name.encode(), {"x": "1"})
            for last in (5, 6):
                oldest = await bus.get_oldest(LASTING.name)
                assert oldest is not None
                await bus.renew(LASTING.name, oldest)
                state = await bus.stream_state(LASTING.name)
                assert state is not None
                assert (state.last_sequence, state.messages) == (last, 2)
            assert state.gaps == 0
            moved = await bus.get_last(LASTING.name, "lasting.a")
            assert moved is not None
            assert (moved.data, moved.headers["x"], moved.headers[subjects.AGAIN]) == (b"a", "1", "true")

        play(exchange)

    def test_a_newer_message_is_neither_replaced_by_an_old_one_nor_removed(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus = harness.bus("one")
            await bus.ensure_stream(LASTING)
            assert await bus.get_oldest(LASTING.name) is None
            await bus.publish("lasting.a", b"old")
            oldest = await bus.get_oldest(LASTING.name)
            assert oldest is not None
            await bus.publish("lasting.a", b"new")
            with pytest.raises(PublishRefused):
                await bus.renew(LASTING.name, oldest)
            await bus.remove(LASTING.name, oldest)
            last = await bus.get_last(LASTING.name, "lasting.a")
            assert last is not None
            assert last.data == b"new"
            await bus.remove(LASTING.name, last)
            assert await bus.get_last(LASTING.name, "lasting.a") is None

        play(exchange)

    def test_a_wiped_stream_is_noticed_and_read_from_its_start(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus, reader = await with_stream(harness), Reader()
            follow = await bus.follow(SPEC.name, (">",), reader.messages.append, reader.reset)
            await bus.publish(pod("old"), b"1")
            await eventually(lambda: len(reader.messages) == 1)
            before = await bus.stream_state(SPEC.name)
            await harness.wipe()
            other = harness.bus("other")
            await other.ensure_stream(SPEC)
            for number in range(5):
                await other.publish(pod(f"new{number}"), b"2")
            await eventually(lambda: follow.healthy and len(reader.messages) == 5)
            after = await other.stream_state(SPEC.name)
            assert before is not None
            assert after is not None
            assert (before.created != after.created, after.last_sequence, reader.resets) == (True, 5, 1)

        play(exchange)

    def test_a_stream_that_is_removed_and_made_again_is_noticed(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus, reader = await with_stream(harness), Reader()
            await bus.follow(SPEC.name, (">",), reader.messages.append, reader.reset)
            for number in range(3):
                await bus.publish(pod(f"old{number}"), b"1")
            await eventually(lambda: len(reader.messages) == 3)
            await harness.delete_stream(SPEC.name)
            await bus.ensure_stream(SPEC)
            await bus.publish(pod("new"), b"2")
            await eventually(lambda: reader.data == [b"2"])
            assert reader.resets == 1

        play(exchange)

    def test_a_stream_that_is_deleted_and_created_again_is_another_one(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus = await with_stream(harness)
            before = await bus.stream_state(SPEC.name)
            await bus.delete_stream(SPEC.name)
            assert await bus.stream_state(SPEC.name) is None
            await bus.delete_stream(SPEC.name)
            await bus.ensure_stream(SPEC)
            after = await bus.stream_state(SPEC.name)
            assert before is not None
            assert after is not None
            assert before.created != after.created

        play(exchange)

    def test_a_server_that_stands_still_is_survived(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus, reader = await with_stream(harness), Reader()
            follow = await bus.follow(SPEC.name, (">",), reader.messages.append, reader.reset)
            await eventually(lambda: follow.healthy)
            await harness.pause()
            with pytest.raises(BusError):
                await bus.publish(pod("p"), b"1")  # whether it is stored, nobody knows yet
            await eventually(lambda: not follow.healthy)
            await harness.resume()
            await eventually(lambda: follow.healthy)
            await bus.publish(pod("p"), b"2")
            await eventually(lambda: reader.data[-1:] == [b"2"])
            assert reader.resets == 0

        play(exchange)

    def test_what_was_asked_through_a_broken_connection_fails_at_once(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus = await with_stream(harness)
            await harness.pause()
            sent = await bus.send(pod("p"), b"1")
            await harness.kill()
            with pytest.raises(BusError, match="connection broke"):
                async with asyncio.timeout(REPLY_SECONDS / 2):
                    await sent
            await harness.start()

        play(exchange)

    def test_a_short_standstill_delays_but_loses_nothing(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            bus, reader = await with_stream(harness), Reader()
            follow = await bus.follow(SPEC.name, (">",), reader.messages.append, reader.reset)
            await eventually(lambda: follow.healthy)
            await harness.pause()
            sent = await bus.send(pod("p"), b"1")
            await asyncio.sleep(0.5)
            assert bus.connected
            assert not reader.messages
            await harness.resume()
            assert await sent == 1
            await eventually(lambda: reader.data == [b"1"])

        play(exchange)
