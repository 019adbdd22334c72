"""Reads from the apiserver that a plan needs, made beside planning; keys that asked are planned again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import msgspec
import structlog

from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.control.keystate import Key
from flotilla_common.kube.interface import ApiError, Unreachable

RETRY_SECONDS = 2.0
"""Delay after failed reads."""

SIDE_BY_SIDE = 16
"""Concurrent reads; a rollout needs many at the same moment."""

Q = TypeVar("Q")
A = TypeVar("A")

Get = Callable[[Resource, str, str], Awaitable[bytes]]
"""Reads an object. Raises ApiError, Unreachable."""


class Questions(Generic[Q, A]):
    """The open questions, one for each key, and the last answers."""

    def __init__(
        self, read: Callable[[Key, Q], Awaitable[A]], clock: Clock, requeue: Callable[[str, str], None]
    ) -> None:
        """Use `read` to find an answer, and `requeue` to plan the key."""
        self._read = read
        self._clock = clock
        self._requeue = requeue
        self._open: dict[Key, Q] = {}
        self._answers: dict[Key, tuple[Q, A]] = {}
        self._wake = asyncio.Event()
        self._free = asyncio.Semaphore(SIDE_BY_SIDE)
        self._log = structlog.get_logger()

    def ask(self, key: Key, question: Q) -> A | None:
        """Return the answer to this question; None until it is there."""
        if (answered := self._answers.get(key)) is not None and answered[0] == question:
            return answered[1]
        self._open[key] = question
        self._wake.set()
        return None

    def forget(self, key: Key) -> None:
        """Drop question and answer of the key."""
        self._open.pop(key, None)
        self._answers.pop(key, None)

    async def run(self) -> None:
        """Answer until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            await asyncio.gather(*(self._answer(key, question) for key, question in list(self._open.items())))
            if self._open and not self._wake.is_set():
                await self._clock.sleep(RETRY_SECONDS)
                self._wake.set()

    async def _answer(self, key: Key, question: Q) -> None:
        try:
            async with self._free:
                answer = await self._read(key, question)
        except (ApiError, Unreachable, msgspec.MsgspecError) as error:
            self._log.warning("cannot read an object that a plan needs", object="/".join(key), error=str(error))
            return
        if self._open.get(key) == question:
            del self._open[key]
            self._answers[key] = (question, answer)
        self._requeue(*key)
