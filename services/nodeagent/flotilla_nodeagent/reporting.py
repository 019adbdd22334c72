"""Sends reports: one request each, whose answer decides whether it counts.

Nothing is retried here. The callers are level-triggered: a key that fails is retried with backoff, and by then there
may be something else to report.
"""

import asyncio
from typing import TypeVar

import msgspec
import structlog

from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError
from flotilla_common.node.reports import EVENTS, SECRETS, Answer, EventReport, SecretsAnswer, SecretsRequest
from flotilla_nodeagent import metrics

ANSWER_SECONDS = 10.0
"""Timeout of an answer: a report is answered after the apiserver has accepted the write."""

EVENTS_UNDER_WAY = 100
"""Limit of events that wait for an answer; while the bus is down, more would only pile up."""

A = TypeVar("A", bound=Answer)

_encode = msgspec.json.Encoder().encode


class ReportNotAccepted(Exception):
    """No answer, or one that asks to send the report again later."""


class ReportRejected(Exception):
    """The report is wrong, or too late: repeating it would not help."""


class Reporter:
    """Sends the reports of one node."""

    def __init__(self, bus: Bus, node: str) -> None:
        self._bus = bus
        self._node = node
        self._events: set[asyncio.Task[None]] = set()
        self._log = structlog.get_logger()

    async def send(self, kind: str, namespace: str, name: str, report: msgspec.Struct) -> Answer:
        """Return the answer to an accepted report. Raises ReportNotAccepted, ReportRejected."""
        return await self._ask(kind, namespace, name, report, Answer)

    async def status(self, kind: str, name: str, report: msgspec.Struct) -> None:
        """Report the status of an object without namespace. A rejection is logged: only a newer object ends it.

        Raises ReportNotAccepted. The status may have been written all the same, which the copy of the object shows.
        """
        try:
            await self.send(kind, "", name, report)
        except ReportRejected as error:
            self._log.warning("report refused", kind=kind, why=str(error))

    async def secrets(self, request: SecretsRequest) -> SecretsAnswer:
        """Return pull secrets, sealed. Raises ReportNotAccepted, ReportRejected."""
        return await self._ask(SECRETS, "", self._node, request, SecretsAnswer)

    def event(self, namespace: str, name: str, event: EventReport) -> None:
        """Send an event in the background. Without an answer it is lost."""
        if len(self._events) < EVENTS_UNDER_WAY:
            task = asyncio.get_running_loop().create_task(self._event(namespace, name, event))
            self._events.add(task)
            task.add_done_callback(self._events.discard)

    async def _event(self, namespace: str, name: str, event: EventReport) -> None:
        try:
            await self._ask(EVENTS, namespace, name, event, Answer)
        except (ReportNotAccepted, ReportRejected) as error:
            self._log.info("event not recorded", reason=event.reason, object=name, why=str(error))

    async def _ask(self, kind: str, namespace: str, name: str, body: msgspec.Struct, answer: type[A]) -> A:
        subject = subjects.report(self._node, kind, namespace, name)
        try:
            given = msgspec.json.decode(await self._bus.request(subject, _encode(body), ANSWER_SECONDS), type=answer)
        except (BusError, msgspec.DecodeError) as error:
            metrics.REPORTS.labels(kind, "unanswered").inc()
            raise ReportNotAccepted(str(error)) from error
        metrics.REPORTS.labels(kind, "accepted" if given.accepted else "again" if given.again else "refused").inc()
        if given.accepted:
            return given
        if given.again:
            raise ReportNotAccepted(given.why)
        raise ReportRejected(given.why)
