"""Keep streams in existence that no single process owns, such as those of records."""

import asyncio
import contextlib
from collections.abc import Sequence

import structlog

from flotilla_common.bus.interface import Bus, BusError, StreamSpec

CHECK_SECONDS = 30.0
"""Seconds between two checks while the connection holds: a stream that somebody removed is lacking for no longer. A
wiped bus has broken the connection, and the streams are checked as soon as there is one again."""

RETRY_SECONDS = 2.0
"""Seconds until the next check when one failed."""


async def keep_streams(bus: Bus, specs: Sequence[StreamSpec]) -> None:
    """Create the streams now, and again whenever they are lacking. Runs until cancelled; logs what fails."""
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
                log.warning("streams cannot be created", error=str(error))
                rest = RETRY_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await connected.wait()
    finally:
        forget()
