"""An ordered read of one stream of `node.v1`, without any right to JetStream.

The agent asks the watcher to have the messages sent to an inbox of its own, and checks the delivery itself: numbers
must have no gap, heartbeats must come and agree. On any failure it asks again, from its position if the stream is still
the same one, else from the start; then `on_reset` is called first.
"""

from collections.abc import Callable

import msgspec
import structlog

from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError, Follow, Message, OnMessage
from flotilla_common.bus.pod_shards import plural_on_bus
from flotilla_common.clock import Clock, Entropy
from flotilla_common.node.reports import FOLLOW, FollowAnswer, FollowRequest

ASK_SECONDS = 5.0
"""Timeout of the request to the watcher."""

SILENCE_SECONDS = 12.0
"""Silence after which a delivery counts as dead: a bit more than two heartbeats."""

REFUSED_SECONDS = 30.0
"""Delay after a final refusal: the watcher may be of an older release."""

CHECK_SECONDS = 0.5
"""Interval of checking the delivery."""

RESUME_SECONDS = 120.0
"""After a longer interruption everything is read again: messages about deletes may have expired (after 300 s)."""

_decode_answer = msgspec.json.Decoder(FollowAnswer).decode


class Object(msgspec.Struct, frozen=True):
    """A message of the stream."""

    message: Message
    number: int  # of the delivery, from 1 on without a gap
    sequence: int  # of the stream


class Heartbeat(msgspec.Struct, frozen=True):
    """A heartbeat: the delivery is alive. `sent` is the number of messages sent so far, if the server reports it."""

    sent: int | None


class Ended(msgspec.Struct, frozen=True):
    """The server ended the delivery."""

    why: str


def read_delivery(message: Message) -> Object | Heartbeat | Ended:
    """Parse the message from the inbox. Raises ValueError when no server sends such a message."""
    status = message.headers.get("Status")
    if status == "100":
        last = message.headers.get("Nats-Last-Consumer")
        return Heartbeat(None if last is None else int(last))
    if status is not None:
        return Ended(f"status {status} {message.headers.get('Description', '')}".strip())
    fields = message.reply.split(".")  # $JS.ACK.<stream>.<consumer>.<delivered>.<sequence>.<number>.<time>.<pending>
    if len(fields) < 9:
        raise ValueError(f"not a delivery: {message.subject}")
    # The long form of the subject has a domain and an account in front, and a token behind.
    sequence, number, _, pending = fields[5:9] if len(fields) == 9 else fields[7:11]
    return Object(msgspec.structs.replace(message, pending=int(pending)), int(number), int(sequence))


class Reader:
    """Reads the messages for one node in one resource, until cancelled. Neither callback may raise."""

    def __init__(
        self,
        *,
        bus: Bus,
        clock: Clock,
        entropy: Entropy,
        node: str,
        resource: Resource,
        on_message: OnMessage,
        on_reset: Callable[[], None],
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._entropy = entropy
        self._node = node
        self._resource = resource
        self._on_message = on_message
        self._on_reset = on_reset
        self._subscription: Follow | None = None
        self._inbox = ""  # the current delivery
        self._early: list[Object] | None = None  # what came before the answer to our request; None: answered
        self._expected = 1
        self._sequence = 0
        self._created = ""
        self._last_message = clock.monotonic()
        self._ask_at = self._last_message
        self._trouble: str = "not asked yet"
        self._logged_trouble: str = ""
        self._log = structlog.get_logger(resource=resource.id)

    @property
    def healthy(self) -> bool:
        """Report whether the delivery works, by the agent's own checks."""
        return not self._trouble and self._bus.connected

    async def run(self) -> None:
        """Keep a delivery going."""
        try:
            while True:
                await self._check_delivery()
                await self._clock.sleep(CHECK_SECONDS)
        finally:
            await self._drop()

    async def _check_delivery(self) -> None:
        if not self._bus.connected:
            self._trouble = self._trouble or "the bus is disconnected"
            return
        if not self._trouble and self._clock.monotonic() - self._last_message > SILENCE_SECONDS:
            self._trouble = "no message from the delivery"
        if not self._trouble or self._clock.monotonic() < self._ask_at:
            return
        if self._trouble != self._logged_trouble:
            self._log.info("requesting the node's objects", why=self._trouble)
            self._logged_trouble = self._trouble
        try:
            await self._ask()
        except BusError as error:
            self._trouble = str(error)

    async def _ask(self) -> None:
        """Request a new delivery, to a fresh inbox."""
        await self._drop()
        away = self._clock.monotonic() - self._last_message
        request = FollowRequest(
            plural=plural_on_bus(self._resource),
            inbox=f"{subjects.node_inbox(self._node)}.{self._entropy.token()}",
            created=self._created if away < RESUME_SECONDS else "",
            last_sequence=self._sequence,
        )
        self._inbox, self._expected, self._early = request.inbox, 1, []
        self._subscription = await self._bus.subscribe(request.inbox, self._receive)
        subject = subjects.report(self._node, FOLLOW, "", plural_on_bus(self._resource))
        answer = _decode_answer(await self._bus.request(subject, msgspec.json.encode(request), ASK_SECONDS))
        if not answer.accepted:
            self._ask_at = self._clock.monotonic() + (0.0 if answer.again else REFUSED_SECONDS)
            raise BusError(answer.why)
        if not answer.resumed:
            self._sequence = 0
            self._on_reset()
        self._created = answer.created
        self._trouble = self._logged_trouble = ""
        self._last_message = self._clock.monotonic()
        early, self._early = self._early, None
        for delivered in early:
            self._take(delivered)

    async def _drop(self) -> None:
        self._inbox = ""
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            await subscription.stop()

    def _receive(self, message: Message) -> None:
        try:
            delivered = read_delivery(message)
        except ValueError as error:
            self._log.warning("unexpected message in the inbox", error=str(error))
            return
        match delivered:
            case Object():
                if self._early is None:
                    self._take(delivered)
                else:
                    self._early.append(delivered)
            case Heartbeat():
                self._last_message = self._clock.monotonic()
                if delivered.sent is not None and self._early is None and delivered.sent != self._expected - 1:
                    self._trouble = f"the server has sent {delivered.sent} messages, {self._expected - 1} came"
            case Ended():
                self._trouble = delivered.why

    def _take(self, delivered: Object) -> None:
        if self._trouble:
            return
        self._last_message = self._clock.monotonic()
        if delivered.number != self._expected:
            self._trouble = f"message {delivered.number} came instead of {self._expected}"
            return
        self._expected += 1
        self._sequence = delivered.sequence
        self._on_message(delivered.message)
