"""The ordered read of a stream, with the guarantees of the real one (bus.ordered) and no more.

Messages come in order and without gaps as far as the client can tell: a missing one shows in the next one's number or
in a heartbeat, a dead consumer in missing heartbeats, another stream in its creation time. Then a new consumer goes on
after the last message, or from the start with `on_reset` when the stream is another one or we were away for too long.
Heartbeats themselves are not simulated, only what their absence leads to.
"""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from flotilla_common.bus.interface import BusError, Message, OnMessage, StreamState
from flotilla_common.bus.ordered import HEARTBEAT_SECONDS, RESUME_SECONDS, RETRY_SECONDS, SILENCE_SECONDS
from tests.simulation.bus.connection import Connection
from tests.simulation.bus.server import Consumer, Server
from tests.simulation.loop import SimulatedLoop


class SimulatedFollow:
    """See `Bus.follow`."""

    def __init__(
        self,
        loop: SimulatedLoop,
        server: Server,
        connection: Connection,
        stream: str,
        subject_filters: Sequence[str],
        on_message: OnMessage,
        on_reset: Callable[[], None],
        *,
        everything: bool = False,
    ) -> None:
        self._loop = loop
        self._server = server
        self._connection = connection
        self._stream = stream
        self._filters = tuple(subject_filters)
        self._on_message = on_message
        self._on_reset = on_reset
        self._everything = everything
        self._consumer: Consumer | None = None
        self._reading = 0  # counts consumers; messages of an earlier one are ignored
        self._attached = False
        self._expected = 1  # the consumer's next number
        self._sequence = 0  # the stream's, of the last message that was passed on
        self._created = ""
        self._silent_since: float | None = loop.time()
        self._wake = asyncio.Event()
        self._task = loop.create_task(self._supervise())
        connection.watch(self)

    @property
    def healthy(self) -> bool:
        return self._attached and self._connection.connected

    async def stop(self) -> None:
        self._connection.unwatch(self)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._leave()

    def slept(self, seconds: float) -> None:
        """Handle a pause of the process, in which nothing was received."""
        if seconds >= SILENCE_SECONDS:
            self._silent_since = self._loop.time() - seconds
            self._lost(self._reading)

    def made(self) -> None:
        """Handle a reconnect: the consumer may be gone, and messages of the meantime with it."""
        self._attached = False
        self._wake.set()

    def silent(self) -> None:
        """Expect no heartbeats from now on; the timeout notices it."""
        if self._silent_since is None:
            self._silent_since = self._loop.time()
        self._later(SILENCE_SECONDS, self._lost_in_silence, self._reading)

    def moving(self) -> None:
        """Heartbeats come again."""
        if self._attached:
            self._silent_since = None

    async def _supervise(self) -> None:
        while True:
            try:
                if self._connection.connected and not self._attached:
                    await self._attach()
            except BusError:
                self._attached = False
            waiting = None if self._attached or not self._connection.connected else RETRY_SECONDS
            try:
                async with asyncio.timeout(waiting):
                    await self._wake.wait()
            except TimeoutError:
                continue
            self._wake.clear()

    async def _attach(self) -> None:
        """Make a new consumer, after the last message or from the start."""
        self._leave()
        state = await self._connection.ask(f"info {self._stream}", lambda: self._server.stream(self._stream).state)
        resume = self._may_resume(state)
        if self._created and not resume:
            self._on_reset()
        if not resume:
            self._sequence = 0
        self._created, self._expected = state.created, 1
        self._reading += 1
        reading = self._reading
        self._consumer = await self._connection.ask(f"consume {self._stream}", lambda: self._consume(reading, resume))
        self._attached = reading == self._reading  # unless it lost messages already
        self._silent_since = None

    def _may_resume(self, state: StreamState) -> bool:
        away = 0.0 if self._silent_since is None else self._loop.time() - self._silent_since
        same = state.created == self._created and state.last_sequence >= self._sequence
        return bool(self._created) and same and away < RESUME_SECONDS

    def _consume(self, reading: int, resume: bool) -> Consumer:
        """At the server. A resumed read that has seen nothing yet starts after sequence 0 and gets all that is held."""
        consumer = Consumer(
            connection=self._connection,
            stream=self._server.stream(self._stream),
            subject_filters=self._filters,
            receive=lambda messages, first: self._receive(reading, messages, first),
            missed=lambda: self._later(HEARTBEAT_SECONDS, self._lost, reading),
            lost=self.silent,
            cursor=self._sequence if resume else 0,
        )
        return self._server.consume(consumer, everything=resume or self._everything)

    def _receive(self, reading: int, messages: list[Message], first: int) -> None:
        for number, message in enumerate(messages, first):
            if reading != self._reading:
                return
            if number != self._expected:
                self._lost(reading)
                return
            self._expected = number + 1
            self._sequence = message.sequence
            pending = first + len(messages) - 1 - number
            self._on_message(msgspec.structs.replace(message, pending=pending) if pending else message)

    def _lost(self, reading: int) -> None:
        """Give up the consumer."""
        if reading == self._reading:
            self._reading += 1
            self._attached = False
            self._wake.set()

    def _lost_in_silence(self, reading: int) -> None:
        if self._silent_since is not None:
            self._lost(reading)

    def _later(self, seconds: float, callback: Callable[[int], None], reading: int) -> None:
        self._loop.call_later(seconds, callback, reading, context=self._connection.context)

    def _leave(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            self._server.stop_consuming(consumer)
