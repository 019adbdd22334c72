"""Separates the versions in the streams before and after a restore of etcd.

resourceVersions only grow, and every cache relies on that. A restore takes them back: objects in the streams may be
newer than the present ones, and would hide them. So each epoch contains the line of its versions. The watcher begins
another line when it sees that versions went back; a reader of two lines starts with an empty cache.
"""

import asyncio
from collections.abc import Iterable

import msgspec
import structlog

from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError
from flotilla_common.clock import Entropy
from flotilla_common.mirror.table import version_number

_decode = msgspec.json.Decoder(subjects.Marker).decode


class VersionLineage(msgspec.Struct, frozen=True):
    """A line of versions, and the highest version in the stream of a resource."""

    name: str
    reached: int = 0
    shards: int = 1  # number of streams that the objects are in


async def follow_lineage(bus: Bus, resource: Resource) -> VersionLineage | None:
    """Return the line of the resource's stream, None if it is empty. Raises BusError."""
    stream = subjects.kube_stream(resource).name
    marker = await bus.get_last(stream, subjects.kube_marker(resource))
    if marker is None:
        return None
    last = await bus.get_last(stream, ">")  # newer than the marker, which is repeated every few seconds only
    newest = _decode(marker.data)
    reached = last.headers.get(subjects.RV, "") if last is not None else ""
    version = max(version_number(newest.rv), version_number(reached))
    return VersionLineage(subjects.line_of(newest.epoch), version, newest.shard_count)


async def begin_lineage(bus: Bus, entropy: Entropy, resources: Iterable[Resource]) -> None:
    """Begin another line on the streams of the resources, because versions went back.

    Publishers step back, and publish everything again in the next line. If the bus rejects it, the next watcher
    compares versions itself.
    """
    await asyncio.gather(*(_begin_lineage(bus, entropy, resource) for resource in resources))


async def _begin_lineage(bus: Bus, entropy: Entropy, resource: Resource) -> None:
    log = structlog.get_logger(resource=resource.id)
    try:
        line = await follow_lineage(bus, resource)
        name = str(int((line.name if line else "") or subjects.FIRST_LINE) + 1)
        marker = subjects.Marker(epoch=subjects.epoch(name, entropy.token()), state=subjects.LISTING)
        marker = marker.of_shards(line.shards if line else 1)
        await bus.publish(subjects.kube_marker(resource), msgspec.json.encode(marker), {subjects.EPOCH: marker.epoch})
    except BusError as error:
        log.warning("cannot begin a line of versions", error=str(error))
    else:
        log.warning("etcd was restored: another line of versions begins", line=name)
