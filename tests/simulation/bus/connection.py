"""One process's connection to the server: in order both ways, whole or broken, and broken before it is noticed.

What a process sends leaves it at once and travels outside of its domain: it arrives even if the process dies or sleeps
meanwhile. What comes back becomes a step of the process. Times are those of the real client (bus.connection,
bus.requests).
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any, Generic, Protocol, TypeVar

from flotilla_common.bus.connection import RECONNECT_SECONDS
from flotilla_common.bus.interface import BusError, PublishRefused
from tests.simulation.bus.faults import Treatment, Way
from tests.simulation.loop import SimulatedLoop

T = TypeVar("T")

LATENCY = 0.0002
"""Fake seconds of one way. A real server took 0.15 ms from publisher to follower: less than the apiserver takes."""

STALE_SECONDS = 10.0
"""Fake seconds until a client notices a stalled peer: pings every 4 s, two of them unanswered."""

REPLY_SECONDS = 5.0
"""Fake seconds until a reply counts as lost (bus.nats.ACK_SECONDS, bus.jetstream.API_SECONDS)."""

Arrival = tuple[Callable[[], None], Context]


class Peer(Protocol):
    """The server as a connection sees it."""

    @property
    def reachable(self) -> bool:
        """Somebody accepts connections."""
        ...

    def treatment(self, way: Way, client: str, subject: str) -> Treatment:
        """Count a message and return its treatment."""
        ...

    def accepted(self, connection: "Connection") -> None:
        """Register a new connection."""
        ...

    def hung_up(self, connection: "Connection") -> None:
        """Forget a closed connection with its requests."""
        ...


class Watcher(Protocol):
    """A user of a connection, notified of its changes."""

    def made(self) -> None:
        """There is a connection, for the first time or again."""
        ...

    def silent(self) -> None:
        """Nothing comes any more, though that need not be known yet."""
        ...

    def moving(self) -> None:
        """Handle that the same connection works again."""
        ...


class Connection:
    """Made by the process `client`, whose steps run in `context`."""

    def __init__(self, loop: SimulatedLoop, server: Peer, client: str, context: Context) -> None:
        self.client = client
        self.context = context
        self.connected = False
        self.ready = asyncio.Event()
        self._watchers: dict[Watcher, None] = {}
        self._loop = loop
        self._server = server
        self._outside = Context()
        self._begun = False
        self._ended = False
        self._frozen = False
        self._backlog: deque[Arrival] = deque()  # what waits for a standing-still connection to move on
        self._there = self._back = 0.0  # when the last message of each way arrives
        self._number = 0  # counts the connections that were made; messages of earlier ones are lost
        self._on_made: list[Callable[[], None]] = []
        self._questions: set[Question[Any]] = set()  # that wait for their answers

    def watch(self, watcher: Watcher) -> None:
        """Tell `watcher` what becomes of the connection."""
        self._watchers[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        """Undo `watch`."""
        self._watchers.pop(watcher, None)

    def on_made(self, callback: Callable[[], None]) -> None:
        """Call back whenever a connection is made."""
        self._on_made.append(callback)

    def off_made(self, callback: Callable[[], None]) -> None:
        """Undo `on_made`."""
        self._on_made.remove(callback)

    def begin(self) -> None:
        """Connect, unless a connection exists."""
        if not self._begun and not self._ended:
            self._begun = True
            self._loop.call_later(2 * LATENCY, self._connect, context=self.context)

    def post(self, way: Way, subject: str, arrive: Callable[[], None]) -> None:
        """Send: `arrive` is called at the server. BusError when there is no connection."""
        self.begin()
        if not self.connected:
            raise BusError("not connected to the bus")
        treatment = self._server.treatment(way, self.client, subject)
        self._there = max(self._there, self._loop.time() + LATENCY + treatment.delay)
        self._carry(self._there, treatment, arrive, self._outside)

    def hand(self, way: Way, subject: str, arrive: Callable[[], None]) -> bool:
        """Server to client: `arrive` becomes a step of the process. False when it is lost on the way."""
        treatment = self._server.treatment(way, self.client, subject)
        self._back = max(self._back, self._loop.time() + LATENCY + treatment.delay)
        self._carry(self._back, treatment, arrive, self.context)
        return not treatment.lost

    def ask(
        self, subject: str, serve: Callable[[], T], *, way: Way = Way.ASK, timeout: float = REPLY_SECONDS
    ) -> asyncio.Future[T]:
        """Send a request. The future gets what `serve` returns or raises (BusError, PublishRefused).

        It fails with BusError when no reply comes, and as soon as the connection breaks. Raises BusError at once when
        there is no connection.
        """
        question = Question[T](self._loop, subject, timeout, self.context)
        self._questions.add(question)
        question.future.add_done_callback(lambda _: self._questions.discard(question))

        def arrive() -> None:
            try:
                result = serve()
            except (BusError, PublishRefused) as error:
                refusal = error
                self.hand(Way.REPLY, subject, lambda: question.fail(refusal))
            else:
                self.hand(Way.REPLY, subject, lambda: question.answer(result))

        self.post(way, subject, arrive)
        return question.future

    def drop(self) -> None:
        """Break the connection so that the client notices."""
        self._number += 1
        self._frozen = False
        self._backlog.clear()
        self._server.hung_up(self)
        if not self._ended:
            self._loop.call_later(LATENCY, self._disconnected, self._number, context=self.context)

    def freeze(self) -> None:
        """Stall both directions, unnoticed for a while."""
        self._frozen = True
        number = self._number

        def stale() -> None:
            if self._frozen and number == self._number:
                self.drop()

        self._loop.call_later(STALE_SECONDS, stale, context=self.context)
        for watcher in self._watchers:
            self._loop.call_soon(watcher.silent, context=self.context)

    def thaw(self) -> None:
        """Deliver the stalled messages, in their order."""
        self._frozen = False
        for watcher in self._watchers:
            self._loop.call_soon(watcher.moving, context=self.context)
        for arrive, context in self._backlog:
            self._loop.call_soon(self._arrive, self._number, arrive, context, context=context)
        self._backlog.clear()

    def end(self) -> None:
        """Over for good: the process closed it or died. What it sent before still arrives."""
        self._ended = True
        self.connected = False
        self._server.hung_up(self)

    def _carry(self, when: float, treatment: Treatment, arrive: Callable[[], None], context: Context) -> None:
        for _ in range(treatment.times):
            self._loop.call_at(when, self._arrive, self._number, arrive, context, context=context)

    def _arrive(self, number: int, arrive: Callable[[], None], context: Context) -> None:
        if number != self._number:
            return
        if self._frozen:
            self._backlog.append((arrive, context))
        else:
            arrive()

    def _connect(self) -> None:
        if self._ended or self.connected:
            return
        if not self._server.reachable:
            self._loop.call_later(RECONNECT_SECONDS, self._connect, context=self.context)
            return
        self.connected = True
        self.ready.set()
        self._server.accepted(self)
        for watcher in list(self._watchers):
            watcher.made()
        for callback in list(self._on_made):
            callback()

    def _disconnected(self, number: int) -> None:
        if number == self._number and not self._ended:
            self.connected = False
            self.ready.clear()
            for question in list(self._questions):
                question.fail(BusError("the connection broke before the reply came"))
            for watcher in list(self._watchers):
                watcher.silent()
            self._loop.call_later(RECONNECT_SECONDS, self._connect, context=self.context)


class Question(Generic[T]):
    """A request that waits for its answer, until it counts as lost."""

    def __init__(self, loop: SimulatedLoop, subject: str, timeout: float, context: Context) -> None:
        self.future: asyncio.Future[T] = loop.create_future()
        late = BusError(f"{subject}: no reply in time")
        self._timer = loop.call_later(timeout, self.fail, late, context=context)

    def answer(self, result: T) -> None:
        """Answer with a result. Only the first answer counts."""
        if not self.future.done():
            self._timer.cancel()
            self.future.set_result(result)

    def fail(self, error: BusError | PublishRefused) -> None:
        """Answer with an error. A cancelled caller does not read it."""
        if not self.future.done():
            self._timer.cancel()
            self.future.set_exception(error)
            self.future.exception()
