"""Creates shared streams, such as those of records, restores them when they are missing, and reads single objects."""

import asyncio
import contextlib
from collections.abc import Sequence

import msgspec
import structlog

from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError, Message, StreamSpec
from flotilla_common.bus.pod_shards import pod_shards, shard_index

CHECK_SECONDS = 30.0
"""Seconds between two checks while the connection holds, and so the longest time that a deleted stream is missing.

A wiped bus breaks the connection, and every reconnect starts a check at once.
"""

RETRY_SECONDS = 2.0
"""Seconds until the next check after a failed check."""

_decode_marker = msgspec.json.Decoder(subjects.Marker).decode


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


async def last_marker(bus: Bus, resource: Resource) -> subjects.Marker | None:
    """Return the last marker of the resource; None without one that can be read. Raises BusError."""
    message = await bus.get_last(subjects.kube_stream(resource).name, subjects.kube_marker(resource))
    if message is None:
        return None
    try:
        return _decode_marker(message.data)
    except msgspec.MsgspecError:
        return None


async def shards_of(bus: Bus, resource: Resource) -> list[Resource]:
    """Return the resource, or the shards in whose streams its objects are. Raises BusError."""
    if not subjects.affiliated(resource) or shard_index(resource):
        return [resource]
    marker = await last_marker(bus, resource)
    return pod_shards(1 if marker is None else marker.shard_count)


async def newest(bus: Bus, resource: Resource, namespace: str, name: str) -> Message | None:
    """Return the newest message of an object, or None. Raises BusError.

    Objects that had the name one after the other may be in several shards.
    """
    shards = await shards_of(bus, resource)
    found = await asyncio.gather(*(newest_in(bus, shard, namespace, name) for shard in shards))
    return max(filter(None, found), key=_version, default=None)


def _version(message: Message) -> int:
    return int(message.headers.get(subjects.RV) or 0)


async def newest_in(bus: Bus, resource: Resource, namespace: str, name: str) -> Message | None:
    """Return the newest message of an object in the stream of one shard, or None. Raises BusError."""
    stream = subjects.kube_stream(resource).name
    message = await bus.get_last(stream, subjects.kube_object(resource, namespace, name))
    if message is not None and (moved := message.headers.get(subjects.TO)):
        return await bus.get_last(stream, moved)
    return message
