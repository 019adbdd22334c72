"""Reads the streams from a point of time on, then all new messages, in the order of storage.

Each stream is read in order, past and present alike, so that no message is missing or read twice. Past messages of all
streams are collected and sorted; later ones are passed on as they arrive.
"""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime

from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError, Message, OnMessage
from flotilla_common.bus.nats import NatsBus
from flotilla_common.installed import published

PATIENCE_SECONDS = 30.0
"""Limit for reading the past: the record of writes holds 256 MiB, which takes some seconds."""


def kept(streams: Iterable[str]) -> list[str]:
    """Return the names of the streams that store subjects with these first words. Heartbeats are not stored."""
    found = {
        "kube": [subjects.kube_stream(resource).name for resource in published()],
        "act": [subjects.ACT_STREAM.name],
        "why": [subjects.DECISIONS_STREAM.name],
    }
    return [name for stream in streams for name in found.get(stream, ())]


async def read(bus: NatsBus, names: Iterable[str], since: datetime, hear: OnMessage) -> None:
    """Pass on the past in time order, and return; new messages follow until the bus is closed.

    Raises BusError if the past cannot be read.
    """
    past: list[Message] | None = []
    behind: set[str] = set()
    arrived = asyncio.Event()

    def reader(name: str) -> OnMessage:
        def take(message: Message) -> None:
            if past is None:
                hear(message)
                return
            past.append(message)
            if not message.pending:
                behind.discard(name)
                arrived.set()

        return take

    for name in names:
        behind.add(name)
        if not await bus.follow_since(name, since, reader(name)):
            behind.discard(name)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while behind:
                arrived.clear()
                await arrived.wait()
    except TimeoutError as error:
        late = ", ".join(sorted(behind))
        raise BusError(f"{late}: not read to the end within {PATIENCE_SECONDS:g} s") from error
    held, past = past, None
    for message in sorted(held, key=lambda one: one.stored_at):
        hear(message)


def stored(message: Message, now: datetime) -> datetime:
    """Return when the message was published, by the stream, or now."""
    return datetime.fromtimestamp(message.stored_at, UTC) if message.stored_at else now
