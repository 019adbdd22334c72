"""Reports of node agents about objects of one kind: kept until the status says what was reported, then answered.

An agent that was told `accepted` may forget its report, so the answer waits for the write. Every replica sees every
report; the one that serves the object answers, the others are silent.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from flotilla_common.api.meta import Object
from flotilla_common.control.controller import Key
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import Answer, Report

T = TypeVar("T", bound=Object)
R = TypeVar("R", bound=Report)

WRITTEN_WITHIN = 5.0
"""Seconds until an agent is told to try again: a status write takes milliseconds unless the apiserver is in trouble."""


class _Waiting(Generic[R]):
    """A report on its way into the status."""

    def __init__(self, report: R) -> None:
        self.report = report
        self.looked = asyncio.Event()
        self.superseded = False


class Inbox(Generic[T, R]):
    """The last report about each object that is not in its status yet."""

    def __init__(
        self,
        table: Table[T],
        *,
        absorbed: Callable[[T, R], bool],
        owns: Callable[[str, str], bool],
        read: Callable[[str, str], Awaitable[object]],
        again: Callable[[str, str], None],
    ) -> None:
        """`absorbed`: whether the status says what is reported; `owns`: whether this replica serves the object; `read`
        brings it into the mirror; `again` plans it."""
        self._table = table
        self._absorbed = absorbed
        self._owns = owns
        self._read = read
        self._again = again
        self._waiting: dict[Key, _Waiting[R]] = {}
        table.listen(self._on_change)

    def serves(self, key: Key) -> bool:
        """This replica is to answer for the object."""
        return self._owns(*key)

    def latest(self, obj: T) -> R | None:
        """What was reported about the object and may not be written yet."""
        waiting = self._waiting.get((obj.metadata.namespace, obj.metadata.name))
        return waiting.report if waiting is not None and waiting.report.uid == obj.metadata.uid else None

    async def find(self, key: Key, uid: str) -> T | None:
        """The object of this uid; the agent may have heard of it before we have. ApiError, Unreachable."""
        for known in (True, False):
            obj = self._table.get(*key)
            if obj is not None and obj.metadata.uid == uid:
                return obj
            if known:
                await self._read(*key)
        return None

    async def written(self, key: Key, report: R) -> Answer | None:
        """Wait until the status says it. Of several reports about one object only the last one waits."""
        if (earlier := self._waiting.pop(key, None)) is not None:
            earlier.superseded = True
            earlier.looked.set()
        waiting = self._waiting[key] = _Waiting(report)
        try:
            async with asyncio.timeout(WRITTEN_WITHIN):
                return await self._answer(key, waiting)
        except TimeoutError:
            return Answer(why="the status could not be written in time", again=True)
        finally:
            if self._waiting.get(key) is waiting:
                del self._waiting[key]

    async def _answer(self, key: Key, waiting: _Waiting[R]) -> Answer | None:
        asked = False
        while True:
            obj = self._table.get(*key)
            if obj is None or obj.metadata.uid != waiting.report.uid:
                return gone(waiting.report)
            if self._absorbed(obj, waiting.report):
                return Answer(accepted=True, resource_version=obj.metadata.resource_version)
            if not self._owns(*key):
                return None
            if not asked:
                asked = True
                self._again(*key)
            await waiting.looked.wait()
            waiting.looked.clear()
            if waiting.superseded:
                return Answer(why="a newer report about the same object came", again=True)

    def _on_change(self, old: T | None, new: T | None) -> None:
        obj = new or old
        if obj is not None:
            waiting = self._waiting.get((obj.metadata.namespace, obj.metadata.name))
            if waiting is not None:
                waiting.looked.set()


def gone(report: Report) -> Answer:
    """The refusal of a report about an object that is no more."""
    return Answer(why=f"there is no such object with uid {report.uid}")
