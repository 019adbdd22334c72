"""The streams: there, as they have to be, kept up to date by the watcher, and read in time."""

from collections.abc import Iterator
from typing import Any

from flotilla_cli.ages import span
from flotilla_cli.doctor.facts import Facts, Stream
from flotilla_cli.doctor.finding import WARNING, Finding
from flotilla_cli.doctor.gather.bus import wanted, with_markers
from flotilla_common.bus.jetstream import stream_config
from flotilla_common.bus.subjects import LISTING

SILENT_SECONDS = 20.0
"""The watcher repeats a marker every five seconds; a lease that changes hands takes up to fifteen."""

LISTING_SECONDS = 60.0
"""A LIST of 20,000 objects takes ten."""

PENDING = 10_000
"""Messages that a reader has not been sent: the mirror of a large cluster takes in as many within seconds."""

_MAKE = "the watcher makes it anew when it starts: restart it, and see its log"
_WATCHER = "see why the watcher does not publish: `flotilla status`, its pods, its /readyz and log"


def seen(facts: Facts) -> str:
    """What was looked at."""
    found = [stream for stream in facts.streams.get().values() if stream is not None]
    return f"{len(found)} streams with {sum(len(stream.consumers) for stream in found)} readers"


def check(facts: Facts) -> Iterator[Finding]:
    """Each stream of this release."""
    unserved = _unserved(facts)
    for name, stream in facts.streams.get().items():
        about = f"stream {name}"
        if name in unserved:
            continue
        if stream is None:
            yield Finding(code="StreamMissing", about=about, text="there is no such stream", advice=_MAKE)
            continue
        yield from _settings(about, name, stream)
        yield from _marker(facts, about, name, stream)
        yield from _readers(about, stream)


def _unserved(facts: Facts) -> set[str]:
    """Streams of kinds that the apiserver does not serve: that is said of the CRD."""
    known = facts.definitions.found
    markers = with_markers()
    return {
        name
        for name, resource in markers.items()
        if resource.custom and known is not None and f"{resource.plural}.{resource.group}" not in known
    }


def _settings(about: str, name: str, stream: Stream) -> Iterator[Finding]:
    should = stream_config(wanted()[name])
    differing = {key: value for key, value in should.items() if _same(stream.config.get(key)) != _same(value)}
    if differing:
        said = ", ".join(f"{key} is {stream.config.get(key)} and should be {value}" for key, value in differing.items())
        yield Finding(code="StreamSettings", about=about, text=said, advice=_MAKE)
    if stream.offline:
        said = f"replicas on {', '.join(stream.offline)} are away"
        yield Finding(code="StreamReplicaAway", about=about, text=said, advice="start these servers", severity=WARNING)


def _same(value: Any) -> Any:
    """The server leaves out what is zero, empty or false."""
    return value or None


def _marker(facts: Facts, about: str, name: str, stream: Stream) -> Iterator[Finding]:
    if name not in with_markers():
        return
    if stream.marker is None or stream.marked is None:
        said = "the watcher has never said how far it is"
        yield Finding(code="MarkerMissing", about=about, text=said, advice=_WATCHER)
        return
    age = (stream.now - stream.marked).total_seconds()
    if stream.marker.state == LISTING and age > LISTING_SECONDS:
        said = f"the watcher has been listing for {span(age)}, epoch {stream.marker.epoch}"
        yield Finding(code="MarkerListing", about=about, text=said, advice=_WATCHER)
    elif stream.marker.state != LISTING and age > SILENT_SECONDS:
        said = f"nobody has published anything for {span(age)}: what services see is as old"
        yield Finding(code="MarkerStale", about=about, text=said, advice=_WATCHER)
    sample = (facts.samples.found or {}).get(with_markers()[name].id)
    if sample and sample.version and int(stream.marker.rv or 0) > int(sample.version):
        said = f"it is at version {stream.marker.rv}, and the apiserver only at {sample.version}: etcd was restored"
        advice = "restart the watcher, then the services (docs/operations.md#after-etcd-was-restored-from-a-backup)"
        yield Finding(code="BusAhead", about=about, text=said, advice=advice)


def _readers(about: str, stream: Stream) -> Iterator[Finding]:
    for one in stream.consumers:
        if one.pending > PENDING:
            said = f"{one.inbox} is {one.pending} messages behind"
            advice = "see that service's CPU and log; it may be stopped, or too slow"
            yield Finding(code="ReaderBehind", about=about, text=said, advice=advice, severity=WARNING)
