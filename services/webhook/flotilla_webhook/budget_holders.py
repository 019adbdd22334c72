"""Names the unavailable pods of a budget in refusals, besides those in its status.

Pods that terminate, are not ready or do not exist use up a budget without an entry in its status. Only the controller
of budgets has them without a LIST of pods for each refusal, and its last record is on the bus (docs/bus.md, why.v1).
One request reads it, within a millisecond or two. It only makes a text longer: a refusal waits for it briefly, and not
at all while the bus is away.
"""

import asyncio

import msgspec
import structlog

from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET, PodUnavailableBudget
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError
from flotilla_common.clock import Clock

WAIT_SECONDS = 0.05
"""Timeout of reading the record."""

REST_SECONDS = 5.0
"""Pause of requests after a record did not come in time."""

MOST_CHARACTERS = 1000
"""Length limit of the text in a refusal."""

_RECORD_BYTES = 64 << 10
_CODES = ("PodsUnavailable", "PodsMissing")

_log = structlog.get_logger()


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
        return found if len(found) <= MOST_CHARACTERS else f"{found[: MOST_CHARACTERS - 1]}…"

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
