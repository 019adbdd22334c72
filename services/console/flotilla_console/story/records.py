"""Reads the records about a workload from the bus, within limits of number, bytes and time."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Generic, Protocol

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError, Message, OnMessage
from flotilla_common.clock import Clock
from flotilla_console.story.newest import Newest
from flotilla_console.story.shared import Shared
from flotilla_insight.history.gather import act_subjects, concerns
from flotilla_insight.published import Act, Record, Why, decoded

STREAMS = (subjects.ACT_STREAM, subjects.DECISIONS_STREAM)
"""The streams that are read: `resources.permissions` of the model takes them."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one read: records and bytes that are kept of each stream, and seconds for all."""

    records: int = 10_000
    bytes: int = 16 * 1024 * 1024
    seconds: float = 5.0


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """The records about a workload, in the order of the streams, and what is not among them."""

    acts: tuple[Act, ...] = ()
    decisions: tuple[Why, ...] = ()
    begins: datetime | None = None
    """The time since which the streams hold everything."""
    cut: int = 0
    """Older records that were left out."""
    unreadable: int = 0
    error: str = ""
    """Why the newest records may be missing."""


class Scanner(Protocol):
    """The part of the bus that reads a stream from its beginning."""

    async def scan(self, stream: str, subject_filter: str, on_message: OnMessage, on_reset: Callable[[], None]) -> None:
        """Pass on all messages under the filter, and return. Raises BusError."""
        ...

    async def get_oldest(self, stream: str) -> Message | None:
        """Return the message with the lowest sequence. Raises BusError."""
        ...


class _Kept(Generic[Record]):
    """The newest records that concern a workload."""

    def __init__(self, kind: type[Record], keep: Callable[[Record], bool], word: bytes, limits: Limits) -> None:
        self._kind = kind
        self._keep = keep
        self._word = word
        self.newest = Newest[Record](limits.records, limits.bytes)
        self.unreadable = 0

    def take(self, message: Message) -> None:
        """Keep a record that concerns the workload."""
        if self._word not in message.data or not self.newest.see(message.sequence):
            return
        record = decoded(message.data, self._kind)
        if record is None:
            self.unreadable += 1
        elif self._keep(record):
            self.newest.put(message.sequence, len(message.data), record)


def _nothing() -> None:
    """Ignore that a read begins again: each message has its sequence."""


async def read(bus: Scanner, resource: Resource, namespace: str, name: str, limits: Limits | None = None) -> Recorded:
    """Return the newest records about a workload of a kind of ours; `error` says if the bus failed meanwhile."""
    limits = limits or Limits()
    word = name.encode()
    acts = _Kept(Act, lambda act: concerns(act, resource, namespace, name), word, limits)
    whys = _Kept(Why, lambda _: True, word, limits)
    begins, error = None, ""
    try:
        async with asyncio.timeout(limits.seconds):
            begins = await _begins(bus)
            decided = subjects.decisions(resource, namespace, name)
            await bus.scan(subjects.DECISIONS_STREAM.name, decided, whys.take, _nothing)
            for subject in act_subjects(resource, namespace, name):
                await bus.scan(subjects.ACT_STREAM.name, subject, acts.take, _nothing)
    except TimeoutError:
        error = f"the records were not read to their end within {limits.seconds:g} s"
    except BusError as failure:
        error = f"the records could not be read: {failure}"
    return Recorded(
        acts=tuple(acts.newest),
        decisions=tuple(whys.newest),
        begins=begins,
        cut=acts.newest.cut + whys.newest.cut,
        unreadable=acts.unreadable + whys.unreadable,
        error=error,
    )


async def _begins(bus: Scanner) -> datetime | None:
    oldest = [await bus.get_oldest(stream.name) for stream in STREAMS]
    return max((datetime.fromtimestamp(one.stored_at, UTC) for one in oldest if one is not None), default=None)


class RecordReader:
    """Reads records once for all viewers of a workload."""

    def __init__(self, bus: Scanner, clock: Clock, limits: Limits | None = None) -> None:
        self._bus, self._limits = bus, limits
        self._shared = Shared[tuple[Resource, str, str], Recorded](self._read, clock)

    async def read(self, resource: Resource, namespace: str, name: str) -> Recorded:
        """Return the records about a workload."""
        return await self._shared.of((resource, namespace, name))

    async def _read(self, key: tuple[Resource, str, str]) -> Recorded:
        return await read(self._bus, *key, self._limits)
