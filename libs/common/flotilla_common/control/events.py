"""Records Kubernetes Events for users, at a limited cost for the apiserver.

Identical events become one with a count. After a few different messages with the same reason on one object in a row,
further ones are combined into a single event, and event writes per object are limited: the rules of Kubernetes' own
recorders. Events are written in the background, with repetitions merged into the same write; warnings go first. Events
wait while the apiserver is busy, and are dropped rather than hold up a rollout.
"""

import asyncio
from collections import OrderedDict

import msgspec
import structlog

from flotilla_common.api.resources import EVENT
from flotilla_common.clock import Clock, Entropy
from flotilla_common.control.metrics import EVENTS_DROPPED
from flotilla_common.control.plan import Event, Json, ObjectRef, PatchType
from flotilla_common.kube.interface import Api, ApiError, Unreachable

BURST = 25.0
"""Event writes that one object may cause at once, as in Kubernetes' own recorders."""

REFILL_SECONDS = 300.0
"""Seconds after which an object may cause another event write, as in Kubernetes' own recorders."""

DISTINCT = 10
"""Different messages with one reason on one object before they are combined."""

WINDOW_SECONDS = 600.0
"""Time over which messages with one reason on one object are counted together."""

BACKLOG = 1000
"""Most events that wait to be written; beyond it the oldest are dropped."""

REST_SHARE = 10.0
"""After an event, the next waits for this many times the time that it took.

A busy apiserver gets few events, an idle one thirty a second.
"""

LONGEST_REST = 1.0
"""Longest pause in seconds between two events, however slow the apiserver is."""

REMEMBERED = 4096
"""Number of series kept in memory."""

COMBINED = "(combined from similar events): "


class _Series:
    """The messages about one object with one reason."""

    def __init__(self, now: float) -> None:
        self.started = now
        self.messages: dict[str, _Written] = {}


class _Written:
    """One Event object and its count."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.first = ""
        self.exists = False


class Recorder:
    """An event recorder of one component, such as `cloneset-controller`."""

    def __init__(self, api: Api, clock: Clock, entropy: Entropy, component: str) -> None:
        self._api = api
        self._clock = clock
        self._entropy = entropy
        self._component = component
        self._series: OrderedDict[tuple[str, str, bool], _Series] = OrderedDict()
        self._tokens: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._backlog: OrderedDict[_Written, tuple[ObjectRef, Event, str]] = OrderedDict()
        self._wake = asyncio.Event()
        self._stamp = 0
        self._log = structlog.get_logger(component=component)

    def record(self, subject: ObjectRef, event: Event, error: str = "") -> None:
        """Record an event on the object, or on the object that it is `about`. Returns at once."""
        subject = event.about or subject
        text = event.text(error)
        about = (subject.uid or subject.key) + subject.field_path
        series = self._series_of((about, event.reason, event.warning))
        if text not in series.messages and len(series.messages) >= DISTINCT:
            text = COMBINED
        written = series.messages.get(text)
        if written not in self._backlog and not self._may_write(subject.uid or subject.key):
            EVENTS_DROPPED.inc()
            return
        if written is None:
            written = series.messages[text] = _Written(self._name(subject))
        written.count += 1
        message = event.text(error) if text is not COMBINED else COMBINED + event.text(error)
        self._backlog[written] = (subject, event, message)
        if len(self._backlog) > BACKLOG:
            self._backlog.popitem(last=False)
            EVENTS_DROPPED.inc()
        self._wake.set()

    async def run(self) -> None:
        """Write the recorded events one at a time, so that they do not compete with a rollout."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._backlog:
                started = self._clock.monotonic()
                await self._write_next()
                took = self._clock.monotonic() - started
                await self._clock.sleep(min(took * REST_SHARE, LONGEST_REST))

    async def flush(self) -> None:
        """Write everything that is waiting, without pauses."""
        while self._backlog:
            await self._write_next()

    def _name(self, subject: ObjectRef) -> str:
        """Return a name that sorts after those of earlier events: kubectl lists events of the same second by name."""
        self._stamp = max(int(self._clock.now().timestamp() * 1_000_000), self._stamp + 1)
        return f"{subject.name[:220]}.{self._stamp:x}{self._entropy.token()}"

    async def _write_next(self) -> None:
        warnings = (written for written, (_, event, _) in self._backlog.items() if event.warning)
        written = next(warnings, None) or next(iter(self._backlog))
        subject, event, message = self._backlog.pop(written)
        await self._write(subject, event, message, written)

    def _series_of(self, key: tuple[str, str, bool]) -> _Series:
        now = self._clock.monotonic()
        series = self._series.get(key)
        if series is None or now - series.started > WINDOW_SECONDS:
            series = self._series[key] = _Series(now)
        self._series.move_to_end(key)
        if len(self._series) > REMEMBERED:
            self._series.popitem(last=False)
        return series

    def _may_write(self, key: str) -> bool:
        now = self._clock.monotonic()
        tokens, since = self._tokens.get(key, (BURST, now))
        tokens = min(BURST, tokens + (now - since) / REFILL_SECONDS)
        allowed = tokens >= 1
        self._tokens[key] = (tokens - 1 if allowed else tokens, now)
        self._tokens.move_to_end(key)
        if len(self._tokens) > REMEMBERED:
            self._tokens.popitem(last=False)
        return allowed

    async def _write(self, subject: ObjectRef, event: Event, message: str, written: _Written) -> None:
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        written.first = written.first or now
        namespace = subject.namespace or "default"
        try:
            if written.exists:
                body: Json = {"count": written.count, "lastTimestamp": now, "message": message}
                data = msgspec.json.encode(body)
                await self._api.patch(EVENT, namespace, written.name, data, PatchType.MERGE)
            else:
                body = self._event(subject, event, message, written, namespace, now)
                await self._api.create(EVENT, namespace, msgspec.json.encode(body))
                written.exists = True
        except (ApiError, Unreachable) as error:
            EVENTS_DROPPED.inc()
            self._log.debug("event not written", object=subject.key, reason=event.reason, error=str(error))

    def _event(
        self, subject: ObjectRef, event: Event, message: str, written: _Written, namespace: str, now: str
    ) -> Json:
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": written.name, "namespace": namespace},
            "involvedObject": subject.reference(),
            "reason": event.reason,
            "message": message[:1024],  # the apiserver's limit
            "type": "Warning" if event.warning else "Normal",
            "source": {"component": self._component, **({"host": event.host} if event.host else {})},
            "reportingComponent": self._component,
            "reportingInstance": event.host,
            "firstTimestamp": written.first,
            "lastTimestamp": now,
            "count": written.count,
        }
