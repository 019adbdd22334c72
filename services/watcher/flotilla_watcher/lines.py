"""Lines of versions: what an etcd that was restored from a backup does to the streams.

resourceVersions only grow, and everybody who remembers objects rests on that. A restore takes them back: what the
streams hold may be newer than what there is, and would hide it. So each epoch names the line that its versions belong
to. The watcher begins another line when it sees that versions went back; whoever reads of two lines begins anew.
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


class Line(msgspec.Struct, frozen=True):
    """A line of versions, and how far the stream of a resource tells of it."""

    name: str
    reached: int = 0


async def follow_line(bus: Bus, resource: Resource) -> Line | None:
    """The line that the resource's stream is in; None if it tells of none. Raises BusError."""
    stream = subjects.kube_stream(resource).name
    marker = await bus.get_last(stream, subjects.kube_marker(resource))
    if marker is None:
        return None
    last = await bus.get_last(stream, ">")  # markers come every few seconds, and what they do not tell of counts, too
    told = _decode(marker.data)
    reached = last.headers.get(subjects.RV, "") if last is not None else ""
    return Line(subjects.line_of(told.epoch), max(version_number(told.rv), version_number(reached)))


async def begin_line(bus: Bus, entropy: Entropy, resources: Iterable[Resource]) -> None:
    """Versions went back: say so on the streams of the resources. Whoever publishes there steps back, and publishes
    everything anew in the next line. Where the bus does not take it, the next watcher compares versions itself."""
    await asyncio.gather(*(_begin_line(bus, entropy, resource) for resource in resources))


async def _begin_line(bus: Bus, entropy: Entropy, resource: Resource) -> None:
    log = structlog.get_logger(resource=resource.id)
    try:
        line = await follow_line(bus, resource)
        name = str(int((line.name if line else "") or subjects.FIRST_LINE) + 1)
        marker = subjects.Marker(epoch=subjects.epoch(name, entropy.token()), state=subjects.LISTING)
        await bus.publish(subjects.kube_marker(resource), msgspec.json.encode(marker), {subjects.EPOCH: marker.epoch})
    except BusError as error:
        log.warning("cannot begin a line of versions", error=str(error))
    else:
        log.warning("etcd was restored: another line of versions begins", line=name)
