"""Creates shared streams, such as those of records, restores them when they are missing, and reads single objects."""

import asyncio
import contextlib
from collections.abc import Sequence

import structlog

from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError, Message, StreamSpec

CHECK_SECONDS = 30.0
"""Seconds between two checks while the connection holds, and so the longest time that a deleted stream is missing.

A wiped bus breaks the connection, and every reconnect starts a check at once.
"""

RETRY_SECONDS = 2.0
"""Seconds until the next check after a failed check."""


async def keep_streams(bus: Bus, specs: Sequence[StreamSpec]) -> None:
    """Create the streams now, and again whenever they are missing, until cancelled; errors are logged."""
    log = structlog.get_logger(streams=[spec.name for spec in specs])
    connected = asyncio.Event()
    forget = bus.on_connected(connected.set)
    try:
        while True:
            connected.clear()
            rest = CHECK_SECONDS
            try:
                for spec in specs:
                    await bus.ensure_stream(spec)
            except BusError as error:
                log.warning("cannot create streams", error=str(error))
                rest = RETRY_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await connected.wait()
    finally:
        forget()


async def newest(bus: Bus, resource: Resource, namespace: str, name: str) -> Message | None:
    """Return the newest message of an object, or None. Raises BusError."""
    stream = subjects.kube_stream(resource).name
    message = await bus.get_last(stream, subjects.kube_object(resource, namespace, name))
    if message is not None and (moved := message.headers.get(subjects.TO)):
        return await bus.get_last(stream, moved)
    return message
