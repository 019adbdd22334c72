"""A work queue with keys, workers and backoff, which all parts of the agent share.

A key that fails is retried without limit, with backoff: the runtime may be restarting, the bus may be down, a report
may have been lost. Each attempt decides from the present state what there is to do.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import structlog

from flotilla_common.control.priority import PriorityOrder
from flotilla_common.control.queue import Backoff, KeyedQueue
from flotilla_nodeagent.agent_context import AgentContext
from flotilla_nodeagent.cri.errors import CriError
from flotilla_nodeagent.reporting import ReportNotAccepted

K = TypeVar("K", bound=Hashable)

BACKOFF = Backoff(0.5, 50.0)
"""Delay between attempts at a key that failed (nodeagent.md §3.1, §5.3)."""

Do = Callable[[K], Awaitable[float | None]]
"""Works on a key; returns the seconds until the next time, if any. CriError and ReportNotAccepted mean a retry."""


class WorkQueue(Generic[K]):
    """A queue and its workers."""

    def __init__(
        self, name: str, context: AgentContext, do: Do[K], *, workers: int, backoff: Backoff = BACKOFF
    ) -> None:
        self._clock = context.clock
        order = PriorityOrder[K](slots=workers)  # no worker waits for a slot
        self._queue = KeyedQueue[K](context.clock, context.entropy, order, backoff)
        self._do = do
        self._workers = workers
        self._log = structlog.get_logger(part=name)

    def add(self, key: K, after: float = 0.0) -> None:
        """Work on the key, now or after some seconds."""
        if after > 0:
            self._queue.add_at(key, self._clock.monotonic() + after)
        else:
            self._queue.add(key)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._loop())

    async def _loop(self) -> None:
        while (key := await self._queue.get()) is not None:
            try:
                await self._process(key)
            finally:
                self._queue.done(key)

    async def _process(self, key: K) -> None:
        try:
            again = await self._do(key)
        except (CriError, ReportNotAccepted) as error:
            delay = self._queue.retry(key)
            self._log.info("trying again later", key=str(key), why=str(error), seconds=round(delay, 1))
        except Exception:  # noqa: BLE001 - one bad object must not stop the others
            self._queue.retry(key)
            self._log.exception("unexpected failure", key=str(key))
        else:
            self._queue.succeed(key)
            if again is not None:
                self.add(key, again)
