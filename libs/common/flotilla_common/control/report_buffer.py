"""Receives node agents' reports about objects of one kind, and answers once the status contains them.

An agent may drop its report after the answer `accepted`, so the answer waits for the write. Every replica receives
every report; only the replica that owns the object answers.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from flotilla_common.api.meta import Object
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key
from flotilla_common.control.watches import Watch
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.node.reports import Answer, Report
from flotilla_common.node.serving import Lookups, Sender, TooOften

T = TypeVar("T", bound=Object)
R = TypeVar("R", bound=Report)

WRITTEN_WITHIN = 5.0
"""Seconds until an agent is asked to retry: a status write takes milliseconds unless the apiserver is in trouble."""


def named_object(sender: Sender) -> Key:
    """Return the object that the report's subject names."""
    return sender.namespace, sender.name


class StatusReports(msgspec.Struct, Generic[T, R], frozen=True, kw_only=True):
    """A controller's rules for reports that end in the status of its objects."""

    kind: str
    """The token on the bus: `report.v1.<node>.<kind>.…`."""
    body: type[R]
    absorbed: Callable[[T, R, datetime], bool]
    """Reports whether the status contains the report at this time."""
    problem: Callable[[T, Sender, R], str] = lambda obj, sender, report: ""
    """Returns why a report about this object is refused; empty if it is accepted."""
    refusal: Callable[[Sender, R], str] = lambda sender, report: ""
    """Returns why a report is refused before the object is looked up; empty if it is accepted."""
    key: Callable[[Sender], Key] = named_object
    """Returns the object that the report is about."""


class _Waiting(Generic[R]):
    """A report that is not in the status yet; a `recorded` report needs no answer."""

    def __init__(self, report: R, *, recorded: bool = False) -> None:
        self.report = report
        self.recorded = recorded
        self.changed = asyncio.Event()
        self.superseded = False


class ReportBuffer(Generic[T, R]):
    """The last report about each object that is not in its status yet."""

    def __init__(self, context: ControllerContext, watch: Watch[T], reports: StatusReports[T, R]) -> None:
        self._context = context
        self._resource = watch.resource
        self._table = context.table(watch)
        self._lookups = Lookups(context.read)
        self._reports = reports
        self._waiting: dict[Key, _Waiting[R]] = {}
        self._table.listen(self._on_change)

    def latest(self, obj: T) -> R | None:
        """Return the report about the object that may not be in its status yet, or None."""
        waiting = self._waiting.get(obj.metadata.key)
        return waiting.report if waiting is not None and waiting.report.uid == obj.metadata.uid else None

    async def receive(self, sender: Sender, report: R) -> Answer | None:
        """Return the answer to a report; None if another replica has to answer."""
        key = self._reports.key(sender)
        if not self._context.owns(*key):
            return None
        if why := self._reports.refusal(sender, report):
            return Answer(why=why)
        try:
            obj = await self._find(sender.node, key, report.uid)
        except (ApiError, Unreachable, TooOften) as error:
            return Answer(why=f"cannot read from the apiserver: {error}", again=True)
        if obj is None:
            return gone(report)
        if why := self._reports.problem(obj, sender, report):
            return Answer(why=why)
        return await self._written(key, report)

    def replay(self, sender: Sender, report: R) -> None:
        """Accept a recorded report. It is dropped once the status contains it, as any other."""
        key = self._reports.key(sender)
        obj = self._table.get(*key)
        if obj is None or self._reports.refusal(sender, report) or self._reports.problem(obj, sender, report):
            return
        if not self._absorbed(obj, report):
            self._waiting[key] = _Waiting(report, recorded=True)

    async def _find(self, node: str, key: Key, uid: str) -> T | None:
        """Return the object with this uid, which the agent may have received before us, or None.

        Raises ApiError, Unreachable, TooOften.
        """

        def held(_: object) -> T | None:
            obj = self._table.get(*key)
            return obj if obj is not None and obj.metadata.uid == uid else None

        return await self._lookups.find(node, self._resource, key, uid, held)

    async def _written(self, key: Key, report: R) -> Answer | None:
        """Wait until the status contains the report. Of several reports about one object only the last waits."""
        if (earlier := self._waiting.pop(key, None)) is not None:
            earlier.superseded = True
            earlier.changed.set()
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
        planned = False
        while True:
            obj = self._table.get(*key)
            if obj is None or obj.metadata.uid != waiting.report.uid:
                return gone(waiting.report)
            if self._absorbed(obj, waiting.report):
                return Answer(accepted=True, resource_version=obj.metadata.resource_version)
            if not self._context.owns(*key):
                return None
            if not planned:
                planned = True
                self._context.requeue(*key)
            await waiting.changed.wait()
            waiting.changed.clear()
            if waiting.superseded:
                return Answer(why="superseded by a newer report about the same object", again=True)

    def _absorbed(self, obj: T, report: R) -> bool:
        return self._reports.absorbed(obj, report, self._context.clock.now())

    def _on_change(self, old: T | None, new: T | None) -> None:
        obj = new or old
        if obj is None:
            return
        key = obj.metadata.key
        waiting = self._waiting.get(key)
        if waiting is None:
            return
        waiting.changed.set()
        if waiting.recorded and (new is None or self._absorbed(new, waiting.report)):
            del self._waiting[key]


def gone(report: Report) -> Answer:
    """Return the refusal of a report about an object that does not exist."""
    return Answer(why=f"there is no object with uid {report.uid}")
