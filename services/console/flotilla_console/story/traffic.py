"""Reads the messages on the bus about one object: its versions, writes of it, and decisions about it."""

import asyncio
from functools import partial
from itertools import chain

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError, Message
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.streams import shards_of
from flotilla_common.clock import Clock
from flotilla_console.story.newest import Newest
from flotilla_console.story.shared import Shared
from flotilla_insight.traffic import Line, LineReader, stored_at

MOST_LINES, MOST_BYTES = 200, 16 * 1024 * 1024
"""Messages of each stream that are kept, and bytes of them: the newest."""

READ_SECONDS = 5.0
"""Deadline of one read."""

ObjectKey = tuple[Resource, str, str]
"""Resource, namespace and name."""


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """The messages about an object, the newest first; `error` says why some may be missing."""

    lines: tuple[Line, ...] = ()
    cut: int = 0
    error: str = ""


class TrafficReader:
    """Reads the messages about an object once for all viewers."""

    def __init__(self, bus: NatsBus, clock: Clock) -> None:
        self._bus, self._clock = bus, clock
        self._shared = Shared[ObjectKey, Traffic](self._read, clock)

    async def read(self, resource: Resource, namespace: str, name: str) -> Traffic:
        """Return the messages about an object. Never raises for a bus that fails."""
        return await self._shared.of((resource, namespace, name))

    async def _read(self, key: ObjectKey) -> Traffic:
        found: dict[str, Newest[Message]] = {}
        error = ""
        try:
            async with asyncio.timeout(READ_SECONDS):
                for stream, subject in await self._places(*key):
                    newest = found.setdefault(stream, Newest(MOST_LINES, MOST_BYTES))
                    await self._bus.scan(stream, subject, partial(_take, newest), lambda: None)
        except TimeoutError:
            error = f"the messages were not read to their end within {READ_SECONDS:g} s"
        except BusError as failure:
            error = f"the messages could not be read: {failure}"
        messages = sorted(chain.from_iterable(found.values()), key=lambda one: one.stored_at)
        reader, now = LineReader(), self._clock.now()
        lines = [line for one in messages if (line := reader.read(one, stored_at(one, now))) is not None]
        return Traffic(lines=tuple(reversed(lines)), cut=sum(one.cut for one in found.values()), error=error)

    async def _places(self, resource: Resource, namespace: str, name: str) -> list[tuple[str, str]]:
        """Return the streams with messages about an object, and the filter in each. Raises BusError."""
        about = f"{subjects.token(namespace)}.{subjects.token(name)}"
        versions = [
            (subjects.kube_stream(shard).name, subjects.kube_object(shard, namespace, name))
            for shard in await shards_of(self._bus, resource)
        ]
        writes = subjects.ACT_STREAM.name, f"act.v1.*.{resource.plural}.{about}"
        decided = subjects.DECISIONS_STREAM.name, subjects.decisions(resource, namespace, name)
        return [*versions, writes, *([decided] if resource.custom else [])]


def _take(newest: Newest[Message], message: Message) -> None:
    if newest.see(message.sequence):
        newest.put(message.sequence, len(message.data), message)
