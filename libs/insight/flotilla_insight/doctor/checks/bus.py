"""Checks the bus: reachable, with users, new enough, with JetStream and free storage.

Its streams: present, with the right settings, kept up to date by the watcher, and read in time. The mirrors of
services: up to date, decodable. And some objects: the same on the bus as at the apiserver.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from flotilla_common.api.uidranges import MOST_RANGES
from flotilla_common.bus.jetstream import stream_config
from flotilla_common.bus.pod_shards import unsharded
from flotilla_common.bus.subjects import LISTING
from flotilla_insight.doctor.facts import Banner, Facts, NotKnown, ReplicaHeartbeat, Stream
from flotilla_insight.doctor.finding import Finding, Looked, broken, warning
from flotilla_insight.doctor.gather.bus import wanted, with_markers
from flotilla_insight.durations import span

OLDEST = (2, 12)
"""Version of nats-server; docs/operations.md names it."""

GOOD = (2, 14, 6)
"""The first version without known faults that matter here: before it, memory grows with every subject that ever was."""

FULL = 0.85
"""Share of the storage that may be used without a warning."""

_START = "start it: an empty disk is fine, its content is created again (`flotilla up`, its pods, its log)"
_USERS = "give the servers users (docs/bus.md#permissions)"

SILENT_SECONDS = 20.0
"""The watcher repeats a marker every five seconds; a lease takes up to fifteen to change hands."""

LISTING_SECONDS = 60.0
"""A LIST of 20,000 objects takes ten."""

MOST_SUBJECTS, MANY_SUBJECTS = 500_000, 400_000
"""Subjects of one stream that nats-server handles well, and the number from which to warn."""

MOST_GAPS = 250_000
"""Gaps after which nats-server no longer writes the index of a stream on disk: a kill costs a scan of all messages.

Streams of objects are in memory, and the watcher publishes them again from time to time. In streams on disk it stores
the oldest messages again long before there are as many gaps.
"""

_RENEWS = "see the watchers' logs: one of them stores the oldest messages again, a thousand per minute"

PENDING = 10_000
"""Messages not sent to a consumer yet: the mirror of a large cluster reads as many within seconds."""

_MAKE = "restart the watcher, which sets it up again, and see its log"

_WATCHER = "see why the watcher does not publish: `flotilla status`, its pods, its /readyz and log"

LAG_SECONDS = 120.0
"""Proof that a mirror is up to date arrives every five seconds over the bus, and about once a minute without it."""

SHOWN = 3

_RESTART = "restart the watcher: it publishes everything again; if that does not help, report it with `flotilla bundle`"

_SHARE = "turn the feature gate ShardedListAndWatch of the apiserver on, or give all watchers --watcher-shards=1"

_BACK = "bring the watcher and the bus back; services return to it by themselves"


def check_bus(facts: Facts) -> Looked:
    """Check each server, and their common storage."""
    banners = facts.banners.get()
    for banner in banners:
        yield from _server(banner, alone=len(banners) == 1)
    if any(not banner.trouble for banner in banners):
        yield from _use(facts)
    return f"bus at {', '.join(f'{one.url} (nats-server {one.version})' for one in banners)}"


def _use(facts: Facts) -> Iterator[Finding]:
    if facts.heartbeats.found is None:
        said = f"it is reachable, but cannot be used from here: {facts.heartbeats.why}"
        advice = "credentials of the user `flotilla` are needed: FLOTILLA_NATS_CREDS, FLOTILLA_NATS_CA (docs/bus.md)"
        yield broken("BusRefuses", "bus", said, advice)
        return
    used, limit = facts.account.get().storage, facts.account.get().storage_limit
    if limit > 0 and used > FULL * limit:
        said = f"{used / limit:.0%} of what JetStream may store is used ({used >> 20} of {limit >> 20} MiB)"
        advice = "raise max_file_store or the account's limit: when it is full, nothing more is published"
        yield warning("BusFull", "bus", said, advice)


def _server(banner: Banner, *, alone: bool) -> Iterator[Finding]:
    about = f"bus at {banner.url}"
    if banner.trouble:
        consequence = "" if alone else "; the other servers answer"
        said = f"no server answers: {banner.trouble}{consequence}"
        yield broken("BusUnreachable", about, said, _START)
        return
    if not banner.users_needed:
        said = "it requires no credentials, and any client can have pods created and deleted"
        yield broken("BusOpen", about, said, _USERS)
    if not banner.jetstream:
        said = "it runs without JetStream: nothing can be stored on it"
        yield broken("BusWithoutJetStream", about, said, "start nats-server with jetstream {}")
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", banner.version)
    if found is None:
        return
    version = tuple(int(part or 0) for part in found.groups())
    if version < OLDEST:
        said = f"it is nats-server {banner.version}, and 2.12 or newer is needed"
        yield broken("BusTooOld", about, said, "upgrade nats-server")
    elif version < GOOD:
        said = f"it is nats-server {banner.version}: before 2.14.6 its memory grows with every pod that ever was"
        yield warning("BusOutdated", about, said, "upgrade nats-server")


def check_streams(facts: Facts) -> Looked:
    """Check each stream of this release."""
    unserved = _unserved(facts)
    for name, stream in facts.streams.get().items():
        about = f"stream {name}"
        if name in unserved:
            continue
        if stream is None:
            yield broken("StreamMissing", about, "the stream does not exist", _MAKE)
            continue
        yield from _settings(about, name, stream)
        yield from _marker(facts, about, name, stream)
        yield from _readers(about, stream)
        yield from _size(about, name, stream)
    found = [stream for stream in facts.streams.get().values() if stream is not None]
    return f"{len(found)} streams with {sum(len(stream.consumers) for stream in found)} readers"


def _unserved(facts: Facts) -> set[str]:
    """Return the streams of kinds that the apiserver does not serve: their CRDs have a finding of their own."""
    known = facts.definitions.found
    markers = with_markers(MOST_RANGES)
    return {
        name
        for name, resource in markers.items()
        if resource.custom and known is not None and f"{resource.plural}.{resource.group}" not in known
    }


def _settings(about: str, name: str, stream: Stream) -> Iterator[Finding]:
    should = stream_config(wanted(MOST_RANGES)[name])
    differing = {key: value for key, value in should.items() if _same(stream.config.get(key)) != _same(value)}
    if differing:
        said = ", ".join(f"{key} is {stream.config.get(key)} and should be {value}" for key, value in differing.items())
        yield broken("StreamSettings", about, said, _MAKE)
    if stream.offline:
        said = f"replicas on {', '.join(stream.offline)} are offline"
        yield warning("StreamReplicaAway", about, said, "start these servers")


def _same(value: Any) -> Any:
    """Return None for a zero, empty or false value: the server leaves these out."""
    return value or None


def _marker(facts: Facts, about: str, name: str, stream: Stream) -> Iterator[Finding]:
    resource = with_markers(MOST_RANGES).get(name)
    if resource is None:
        return
    if stream.marker is None or stream.marked is None:
        said = "the watcher has never published its marker"
        yield broken("MarkerMissing", about, said, _WATCHER)
        return
    age = (stream.now - stream.marked).total_seconds()
    if stream.marker.state == LISTING and age > LISTING_SECONDS:
        said = f"the watcher has been listing for {span(age)}, epoch {stream.marker.epoch}"
        yield broken("MarkerListing", about, said, _WATCHER)
    elif stream.marker.state != LISTING and age > SILENT_SECONDS:
        said = f"nothing has been published for {span(age)}: services may see a state that old"
        yield broken("MarkerStale", about, said, _WATCHER)
    sample = (facts.samples.found or {}).get(unsharded(resource).id)
    if sample and sample.version and int(stream.marker.rv or 0) > int(sample.version):
        said = f"it is at version {stream.marker.rv}, and the apiserver only at {sample.version}: etcd was restored"
        advice = "restart the watcher, then the services (docs/operations.md#after-etcd-was-restored-from-a-backup)"
        yield broken("BusAhead", about, said, advice)


def _readers(about: str, stream: Stream) -> Iterator[Finding]:
    for one in stream.consumers:
        if one.pending > PENDING:
            said = f"{one.inbox} is {one.pending} messages behind"
            advice = "see that service's CPU and log; it may be stopped, or too slow"
            yield warning("ReaderBehind", about, said, advice)


def _size(about: str, name: str, stream: Stream) -> Iterator[Finding]:
    if stream.subjects > MANY_SUBJECTS:
        said = f"it has {stream.subjects} subjects, and nats-server becomes slow beyond {MOST_SUBJECTS} in a stream"
        yield warning("StreamLarge", about, said, "delete objects that are done, or split the cluster")
    spec = wanted(MOST_RANGES)[name]
    if stream.gaps > MOST_GAPS and spec.leaves_gaps:
        said = f"{stream.gaps} replaced messages lie between its first and its last: a killed server starts slowly"
        yield warning("StreamGaps", about, said, _RENEWS)


def check_mirrors(facts: Facts) -> Looked:
    """Check each replica's mirrors, then the streams themselves."""
    for one in facts.heartbeats.get():
        yield from _mirrors(one)
    samples = facts.samples.get()
    for resource, sample in samples.items():
        about = f"objects {resource}"
        for code, what, names in (
            ("BusLacksObjects", "missing on the bus", sample.missing),
            ("BusObjectsStale", "older on the bus than at the apiserver", sample.stale),
            ("BusKeepsObjects", "still on the bus, although deleted at the apiserver", sample.ghosts),
        ):
            if names:
                yield broken(code, about, f"{_some(names)}: {what}", _RESTART)
    if samples and all(sample.denied for sample in samples.values()):
        raise NotKnown("not allowed: no published resource may be listed here")
    denied = [resource for resource, sample in samples.items() if sample.denied]
    compared = f"{sum(one.compared for one in samples.values())} objects of {len(samples) - len(denied)} resources"
    left_out = f"; not of {', '.join(denied)}, which may not be listed here" if denied else ""
    return f"{compared} compared with the bus{left_out}"


def _mirrors(one: ReplicaHeartbeat) -> Iterator[Finding]:
    beat = one.beat
    about = one.who
    if beat.direct:
        said = f"it watches the apiserver directly instead of the bus: {_some(beat.direct)}"
        yield warning("MirrorDirect", about, said, _BACK)
    if beat.idle:
        said = "; ".join(f"{resource}: {why}" for resource, why in sorted(beat.idle.items()))
        yield warning("PodsNotShared", about, said, _SHARE)
    if beat.lag > LAG_SECONDS:
        said = f"its view of the cluster may be {span(beat.lag)} old"
        yield broken("MirrorStale", about, said, _BACK)
    if beat.undecodable:
        which = ", ".join(f"{count} {resource}" for resource, count in sorted(beat.undecodable.items()))
        said = f"it cannot decode {which}, and does not reconcile them"
        advice = "`flotilla explain` and the service's log name field and object: correct them"
        yield broken("Undecodable", about, said, advice)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
