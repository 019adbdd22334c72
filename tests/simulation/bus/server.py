"""The simulated nats-server: streams, their consumers, live subscriptions, and its faults.

It has only what the real client (flotilla_common.bus) uses. Its methods up to the faults are called when a message
arrives, outside of all processes; the faults are called by tests.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from typing import Final

import msgspec

from flotilla_common.bus import jetstream
from flotilla_common.bus.interface import BusError, Delivery, Message, PublishRefused, StreamSpec, StreamState
from tests.simulation.bus.connection import Connection
from tests.simulation.bus.faults import UNDISTURBED, Faults, Hop, Treatment, Way
from tests.simulation.bus.push_consumer import PushConsumer
from tests.simulation.bus.stream import Stream, matches, passes
from tests.simulation.loop import EPOCH, SimulatedLoop

MAX_PAYLOAD: Final = 8 << 20
"""Bytes of one message, as our servers are configured."""


class StreamMissing(BusError):
    """There is no such stream."""


class Live(msgspec.Struct, eq=False):
    """A live subscription. Those that share a queue take turns."""

    connection: Connection
    subject_filter: str
    queue: str
    receive: Callable[[Message], None]


class Consumer(msgspec.Struct, eq=False):
    """The server's side of a follow: everything after `cursor`, in order."""

    connection: Connection
    stream: Stream
    subject_filters: tuple[str, ...]
    receive: Callable[[list[Message], int], None]
    missed: Callable[[], None]  # a message was lost on the way
    lost: Callable[[], None]  # the heartbeats have stopped
    cursor: int = 0
    sent: int = 0  # messages; the client notices a gap
    stalled: bool = False


class Server:
    """One server for all processes."""

    def __init__(self, loop: SimulatedLoop, faults: Faults | None = None) -> None:
        self.faults = faults
        self.streams: dict[str, Stream] = {}
        self.steps = 0
        """Messages that streams stored so far."""
        self.on_step: Callable[[int, Message], None] | None = None
        """Called after each of them, with its number from 1 on."""
        self._loop = loop
        self._reachable = True
        self._paused = False
        self._connections: list[Connection] = []
        self._consumers: list[Consumer] = []
        self._lives: list[Live] = []
        self._pushed: list[PushConsumer] = []
        self._outside = Context()
        self._routes: dict[str, Stream | None] = {}  # by subject, as long as there are the same streams
        self._passages = 0
        self._made = 0

    # What connections need

    @property
    def reachable(self) -> bool:
        """The server accepts connections."""
        return self._reachable and not self._paused

    def treatment(self, way: Way, client: str, subject: str) -> Treatment:
        if self.faults is None:
            return UNDISTURBED
        self._passages += 1
        return self.faults.treatment(Hop(self._passages - 1, way, client, subject))

    def accepted(self, connection: Connection) -> None:
        if connection not in self._connections:
            self._connections.append(connection)

    def hung_up(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
        self._consumers = [one for one in self._consumers if one.connection is not connection]
        self._lives = [one for one in self._lives if one.connection is not connection]

    # What clients ask for

    def ensure_stream(self, spec: StreamSpec) -> None:
        """Create it, or change its limits."""
        held = self.streams.get(spec.name)
        if held is None:
            self._made += 1
            created = f"{EPOCH:%Y-%m-%dT%H:%M:%S}.{self._loop.time():.6f}-{self._made}"
            self.streams[spec.name] = Stream(spec, created)
        else:
            held.spec = spec
        self._routes.clear()

    def publish(
        self, subject: str, data: bytes, headers: Mapping[str, str], expected: int | None, ttl: float | None
    ) -> int:
        """Store a message; returns its sequence. BusError, PublishRefused."""
        stream = self._taking(subject)
        if stream is None:
            raise BusError(f"no responders on {subject}")
        return self._store(stream, subject, data, headers, expected, ttl).sequence

    def accept(self, message: Message) -> None:
        """Accept a message without a reply."""
        stream = self._taking(message.subject)
        if stream is not None:
            self._store(stream, message.subject, message.data, message.headers, None, None)
        else:
            self.deliver_live(message)

    def state(self, name: str) -> StreamState | None:
        """Return the state of a stream; None when it does not exist."""
        stream = self.streams.get(name)
        return stream.state if stream is not None else None

    def stream(self, name: str) -> Stream:
        """StreamMissing."""
        found = self.streams.get(name)
        if found is None:
            raise StreamMissing(f"stream {name} does not exist")
        return found

    def newest(self, name: str, subject: str) -> Message | None:
        """Return the last message of a subject; None when there is none, or no stream."""
        stream = self.streams.get(name)
        return None if stream is None else stream.newest(subject, self._loop.time())

    def oldest(self, name: str) -> Message | None:
        """Return the first message of a stream; None when there is none, or no stream."""
        stream = self.streams.get(name)
        return None if stream is None else stream.oldest(self._loop.time())

    def renew(self, name: str, message: Message, headers: Mapping[str, str]) -> int:
        """Store a message again, if it is the last one of its subject. StreamMissing, PublishRefused."""
        stream, held = self.stream(name), self.newest(name, message.subject)
        if held is None or held.sequence != message.sequence:
            raise PublishRefused(f"wrong last sequence: {held and held.sequence}")
        return self._store(stream, message.subject, message.data, headers, None, None).sequence

    def holds(self, name: str, subject_filter: str) -> bool:
        """Report whether the stream has a message under the filter."""
        stream = self.streams.get(name)
        return stream is not None and any(stream.after(0, (subject_filter,), self._loop.time()))

    def consume(self, consumer: Consumer, *, everything: bool = False) -> Consumer:
        """Start a consumer. At the start of its stream it gets the newest message of each subject, or everything."""
        stream, now = consumer.stream, self._loop.time()
        if consumer.cursor or everything:
            past = list(stream.after(consumer.cursor, consumer.subject_filters, now))
        else:
            past = list(stream.newest_of_each(consumer.subject_filters, now))
        self._consumers.append(consumer)
        self._send(consumer, past)
        consumer.cursor = stream.last_sequence
        return consumer

    def stop_consuming(self, consumer: Consumer) -> None:
        if consumer in self._consumers:
            self._consumers.remove(consumer)

    def push(self, name: str, reader: str, filters: Sequence[str], inbox: str, created: str, after: int) -> Delivery:
        """Start to push to an inbox, after a sequence if the stream is the one that was read.

        Ends an earlier delivery of the reader. Raises StreamMissing.
        """
        stream = self.stream(name)
        resumed = bool(created) and stream.created == created and stream.last_sequence >= after
        self._pushed = [one for one in self._pushed if (one.stream, one.reader) != (stream, reader)]
        pushed = PushConsumer(self, stream, reader, filters, inbox, after if resumed else None)
        self._pushed.append(pushed)
        pushed.go_on(self._loop.time())
        self._loop.call_later(jetstream.DELIVERY_HEARTBEAT_SECONDS, self._beat, pushed, context=self._outside)
        return Delivery(stream.created, resumed)

    def inboxes(self, name: str) -> set[str]:
        """Where messages of the stream are sent to. StreamMissing."""
        stream = self.stream(name)
        return {one.inbox for one in self._pushed if one.stream is stream}

    def subscribe(self, live: Live) -> None:
        self._lives.append(live)
        for pushed in self._pushed:
            if matches(live.subject_filter, pushed.inbox):
                pushed.heard(self._loop.time())

    def unsubscribe(self, live: Live) -> None:
        if live in self._lives:
            self._lives.remove(live)

    def deliver_live(self, message: Message, subject: str = "") -> bool:
        """Deliver a message to live subscribers, one of each queue; of another subject if one is given.

        Returns False when there are none.
        """
        served: set[tuple[str, str]] = set()
        taken = [live for live in self._lives if matches(live.subject_filter, subject or message.subject)]
        for live in taken:
            group = (live.subject_filter, live.queue)
            if live.queue and group in served:
                continue
            served.add(group)
            if live.queue:  # the next request goes to the next one
                self._lives.remove(live)
                self._lives.append(live)
            live.connection.hand(Way.LIVE, message.subject, lambda live=live: live.receive(message))
        return bool(taken)

    # Faults

    def kill(self) -> None:
        """kill -9: connections break; what lies on disk stays."""
        self._reachable = self._paused = False
        self._pushed.clear()
        self.streams = {name: stream for name, stream in self.streams.items() if not stream.spec.rebuilt}
        self._routes.clear()
        for connection in list(self._connections):
            connection.drop()

    def revive(self) -> None:
        """Start again after `kill`."""
        self._reachable = True

    def wipe(self) -> None:
        """Kill it, remove everything that it stored, start it again."""
        self.kill()
        self.streams.clear()
        self.revive()

    def pause(self) -> None:
        """SIGSTOP: nothing moves; clients notice after a while."""
        self._paused = True
        for connection in self._connections:
            connection.freeze()

    def resume(self) -> None:
        """SIGCONT: everything that was sent meanwhile arrives."""
        self._paused = False
        for connection in self._connections:
            connection.thaw()

    def lose_stream(self, name: str) -> None:
        """Remove a stream with its consumers. Their clients miss the heartbeats."""
        stream = self.streams.pop(name, None)
        self._routes.clear()
        self._lose_consumers(stream)

    def _lose_consumers(self, stream: Stream | None) -> None:
        for consumer in [one for one in self._consumers if one.stream is stream]:
            self._consumers.remove(consumer)
            consumer.lost()
        self._pushed = [one for one in self._pushed if one.stream is not stream]

    def empty_stream(self, name: str) -> None:
        """Lose the messages and consumers of a stream, which stays the same: two of three servers have died."""
        if stream := self.streams.get(name):
            stream.lose_messages()
            self._lose_consumers(stream)

    def stall(self, client: str, stream: str, *, noticed: bool = False) -> None:
        """Stall the consumer of a follow.

        Either its heartbeats stop as well and the client notices, or they go on and it does not.
        """
        for consumer in self._consumers_of(client, stream):
            consumer.stalled = True
            if noticed:
                consumer.lost()

    def go_on(self, client: str, stream: str) -> None:
        """End a stall: what was held back is delivered."""
        for consumer in self._consumers_of(client, stream):
            consumer.stalled = False
            self._send(
                consumer, list(consumer.stream.after(consumer.cursor, consumer.subject_filters, self._loop.time()))
            )
            consumer.cursor = consumer.stream.last_sequence

    def _consumers_of(self, client: str, stream: str) -> list[Consumer]:
        return [one for one in self._consumers if one.connection.client == client and one.stream.spec.name == stream]

    def _beat(self, pushed: PushConsumer) -> None:
        if pushed not in self._pushed:
            return
        if pushed.beat(self._loop.time()):
            self._loop.call_later(jetstream.DELIVERY_HEARTBEAT_SECONDS, self._beat, pushed, context=self._outside)
        else:
            self._pushed.remove(pushed)

    def _taking(self, subject: str) -> Stream | None:
        if subject not in self._routes:
            takers = (stream for stream in self.streams.values() if stream.takes(subject))
            self._routes[subject] = next(takers, None)
        return self._routes[subject]

    def _store(
        self,
        stream: Stream,
        subject: str,
        data: bytes,
        headers: Mapping[str, str],
        expected: int | None,
        ttl: float | None,
    ) -> Message:
        message = stream.store(subject, data, headers, now=self._loop.time(), expected=expected, ttl=ttl)
        for consumer in self._consumers:
            if consumer.stream is stream and not consumer.stalled:
                if passes(consumer.subject_filters, subject):
                    self._send(consumer, [message])
                consumer.cursor = message.sequence
        for pushed in self._pushed:
            if pushed.stream is stream and pushed.takes(message):
                pushed.go_on(self._loop.time())
        self.deliver_live(message)
        self.steps += 1
        if self.on_step is not None:
            self.on_step(self.steps, message)
        return message

    def _send(self, consumer: Consumer, messages: list[Message]) -> None:
        if messages:
            first = consumer.sent + 1
            consumer.sent += len(messages)
            subject = messages[0].subject
            if not consumer.connection.hand(Way.DELIVER, subject, lambda: consumer.receive(messages, first)):
                consumer.missed()
