"""Live subscriptions, requests and their answers: at most once, outside streams."""

import asyncio
from itertools import count

from flotilla_common.bus.interface import BusError, Message, OnMessage, OnRequest
from flotilla_common.bus.nats import REQUEST_ERROR
from tests.simulation.bus.connection import Connection, Question
from tests.simulation.bus.faults import Way
from tests.simulation.bus.server import Live, Server
from tests.simulation.loop import SimulatedLoop


class LiveFollow:
    """A plain subscription that moves on to every new connection."""

    def __init__(
        self, server: Server, connection: Connection, subject_filter: str, queue: str, receive: OnMessage
    ) -> None:
        self._server = server
        self._connection = connection
        self._live = Live(connection, subject_filter, queue, receive)
        self._subscribed = False
        connection.watch(self)
        if connection.connected:
            self.made()

    @property
    def healthy(self) -> bool:
        return self._subscribed and self._connection.connected

    def made(self) -> None:
        self._subscribed = True
        self._connection.post(Way.SOON, self._live.subject_filter, lambda: self._server.subscribe(self._live))

    def silent(self) -> None:
        """Miss what is published meanwhile."""

    def moving(self) -> None:
        """Continue after stalled messages have arrived."""

    async def stop(self) -> None:
        self._connection.unwatch(self)
        self._subscribed = False
        self._server.unsubscribe(self._live)


class Requests:
    """One process's requests, and its answers to those of others."""

    def __init__(
        self, loop: SimulatedLoop, server: Server, connection: Connection, inbox_prefix: str = "_INBOX"
    ) -> None:
        self._loop = loop
        self._server = server
        self._connection = connection
        self._prefix = f"{inbox_prefix}.{connection.client}"
        self._inbox = LiveFollow(server, connection, f"{self._prefix}.*", "", self._answered)
        self._numbers = count(1)
        self._waiting: dict[str, Question[bytes]] = {}
        self._running: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> bool:
        """Report whether a reply is outstanding."""
        return bool(self._waiting)

    async def ask(self, subject: str, data: bytes, timeout: float) -> bytes:
        """See `Bus.request`."""
        reply = f"{self._prefix}.{next(self._numbers)}"
        question = Question[bytes](self._loop, subject, timeout, self._connection.context)
        message = Message(subject=subject, data=data, reply=reply)

        def arrive() -> None:
            if not self._server.deliver_live(message):
                nobody = BusError(f"no responders on {subject}")
                self._connection.hand(Way.REPLY, subject, lambda: question.fail(nobody))

        self._waiting[reply] = question
        try:
            self._connection.post(Way.ASK, subject, arrive)
            return await question.future
        finally:
            del self._waiting[reply]

    def server(self, on_request: OnRequest) -> OnMessage:
        """Return a handler of messages that answers with `on_request`."""

        def receive(message: Message) -> None:
            task = self._loop.create_task(self._answer(message, on_request))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

        return receive

    async def _answer(self, message: Message, on_request: OnRequest) -> None:
        headers: dict[str, str] = {}
        try:
            body = await on_request(message)
        except Exception as error:  # noqa: BLE001 - as the real one: whatever a handler raises, the asker hears of it
            body, headers = b"", {REQUEST_ERROR: (str(error) or type(error).__name__).replace("\n", " ")}
        if message.reply and body is not None and self._connection.connected:
            answer = Message(subject=message.reply, data=body, headers=headers)
            self._connection.post(Way.SOON, message.reply, lambda: self._server.accept(answer))

    def _answered(self, message: Message) -> None:
        question = self._waiting.get(message.subject)
        if question is None:
            return
        if REQUEST_ERROR in message.headers:
            question.fail(BusError(message.headers[REQUEST_ERROR]))
        else:
            question.answer(message.data)
