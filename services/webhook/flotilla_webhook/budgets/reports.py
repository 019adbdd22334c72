"""Reports decisions about budgets: the text of a refusal, events, a metric, the protection log, records on the bus.

See podunavailablebudget.md §10. A refusal names the unavailable pods of the budget, besides those in its status: pods
that terminate, are not ready or do not exist use up a budget without an entry there. Only the controller of budgets has
them without a LIST of pods for each refusal, and its last record is on the bus (docs/bus.md, why.v1). One request reads
it, within a millisecond or two. It only makes a text longer: a refusal waits for it briefly, and not at all while the
bus is away.
"""

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from flotilla_common.api.documents import text
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET, PodUnavailableBudget
from flotilla_common.api.meta import ObjectMeta, controller_of
from flotilla_common.api.resources import POD
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError
from flotilla_common.clock import Clock
from flotilla_common.control.events import Recorder
from flotilla_common.control.journal import Admission, Journal
from flotilla_common.control.plan import Event, ObjectRef
from flotilla_webhook.metrics import Metrics
from flotilla_webhook.pods.admission import PodChange

WAIT_SECONDS = 0.05
"""Timeout of reading the record."""

REST_SECONDS = 5.0
"""Pause of requests after a record did not come in time."""

MAX_CHARACTERS = 1000
"""Length limit of the text in a refusal."""

_RECORD_BYTES = 64 << 10
_CODES = ("PodsUnavailable", "PodsMissing")

_log = structlog.get_logger()

COMPONENT = "pub-controller"

PREVENTED = Event("PubPreventPodDeletion", "openkruise pub prevents pod deletion", warning=True)


class _Reason(msgspec.Struct):
    code: str = ""
    message: str = ""


class _Record(msgspec.Struct):
    """The last decision about a budget, as `Journal.why` publishes it."""

    uid: str = ""
    reasons: list[_Reason] = []


class BudgetHolders:
    """The records that are being read. Concurrent requests share a read."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._reading: dict[tuple[str, str], asyncio.Task[_Record]] = {}  # by namespace and name
        self._rests_until = 0.0

    async def sentences(self, budget: PodUnavailableBudget | None) -> str:
        """Return the sentences of the record about unavailable pods of the budget, each after a semicolon.

        Returns "" if no record of this very budget comes in time.
        """
        if budget is None:
            return ""
        record = await self._record(*budget.metadata.key)
        if record.uid != budget.metadata.uid:
            return ""
        found = "".join(f"; {reason.message}" for reason in record.reasons if reason.code in _CODES)
        return found if len(found) <= MAX_CHARACTERS else f"{found[: MAX_CHARACTERS - 1]}…"

    async def _record(self, namespace: str, name: str) -> _Record:
        key = namespace, name
        reading = self._reading.get(key)
        if reading is None:
            if not self._bus.connected or self._clock.monotonic() < self._rests_until:
                return _Record()
            reading = self._reading[key] = asyncio.create_task(self._read(namespace, name))
            reading.add_done_callback(lambda _: self._reading.pop(key, None))
        return await asyncio.shield(reading)

    async def _read(self, namespace: str, name: str) -> _Record:
        """Return the record, an empty one if it does not exist or cannot be read."""
        subject = subjects.last_why(POD_UNAVAILABLE_BUDGET, namespace, name)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                data = await self._bus.request(subject, b"", WAIT_SECONDS)
        except (BusError, TimeoutError) as failure:
            self._rests_until = self._clock.monotonic() + REST_SECONDS
            _log.info("no record of a budget", namespace=namespace, name=name, why=str(failure) or "no reply in time")
            return _Record()
        if not data or len(data) > _RECORD_BYTES:
            return _Record()
        try:
            return msgspec.json.decode(data, type=_Record)
        except (msgspec.MsgspecError, RecursionError) as fault:
            _log.info("cannot read the record of a budget", namespace=namespace, name=name, why=str(fault))
            return _Record()


class BudgetRecords(msgspec.Struct, frozen=True):
    """The outputs for units that were taken, and for requests that found none. No method waits."""

    journal: Journal
    events: Recorder
    metrics: Metrics
    log: Callable[[bytes], None]
    """Appends a line to the protection log."""

    def taken(self, change: PodChange, pod: ObjectMeta, budget: str, seconds: float) -> None:
        """Record that a unit was taken; `seconds` is the duration of the answer."""
        self.metrics.budget_requests.labels(change.operation.lower(), "taken").inc()
        self._publish(change, pod, budget, "", seconds)

    def refused(self, change: PodChange, pod: ObjectMeta, budget: str, message: str, seconds: float) -> None:
        """Record a request that was refused because there was no unit; `seconds` is the duration of the answer."""
        user = change.request.user_info.username
        self._publish(change, pod, budget, message, seconds)
        self.events.record(ObjectRef.of(POD, pod), PREVENTED)
        self.metrics.budget_requests.labels(change.operation.lower(), "refused").inc()
        self.metrics.budgets.count(_series(pod), user)
        line = {
            "Event": "PodUnavailableBudget",
            "Kind": POD.kind,
            "Namespace": change.namespace,
            "Name": pod.name,
            "UserAgent": user,
        }
        self.log(msgspec.json.encode(line))

    def _publish(self, change: PodChange, pod: ObjectMeta, budget: str, refusal: str, seconds: float) -> None:
        options = change.request.options or {}
        self.journal.admitted(
            POD,
            Admission(
                action=change.operation.lower(),
                namespace=change.namespace,
                name=pod.name,
                uid=pod.uid,
                generation=0,
                user=change.request.user_info.username,
                manager=text(options.get("fieldManager")),
                changes=[],
                refusal=refusal,
                seconds=seconds,
                owner=ObjectRef(POD_UNAVAILABLE_BUDGET, change.namespace, budget),
            ),
        )


def _series(pod: ObjectMeta) -> str:
    """Return the value of the metric's label: the workload of the pod, or the pod itself if it has none."""
    owner, namespace = controller_of(pod), pod.namespace or "default"
    return f"unknown_{namespace}_{pod.name}" if owner is None else f"{owner.kind}_{namespace}_{owner.name}"
