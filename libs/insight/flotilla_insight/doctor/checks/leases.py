"""Checks the leases: each shard held by one live replica, all with the same number of shards.

Two reads of a lease some seconds apart tell whether its holder is alive: if it was renewed, it is, independent of
clocks. A lease that did not change may still be valid for its duration.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec

from flotilla_common.bus.pod_shards import plural_on_bus
from flotilla_common.control.leases import FORGET_AFTER, Lease
from flotilla_common.control.shards import NUMBER_LABEL, ROLE_LABEL, SERVICE_LABEL
from flotilla_insight.doctor.expected import services
from flotilla_insight.doctor.facts import Facts, ReplicaHeartbeat
from flotilla_insight.doctor.finding import Finding, Looked, broken, warning
from flotilla_insight.doctor.gather.bus import pods_among, with_markers
from flotilla_insight.durations import span

LATE_SECONDS = 10.0
"""An expired lease is taken over within two seconds; the new holder then lists its objects."""

MEMBER, SHARD = "member", "shard"
WATCHER = "watcher"
"""The service whose shards are resources."""


class Seen(msgspec.Struct, frozen=True):
    """A lease with its state."""

    lease: Lease
    alive: bool
    overdue: float  # seconds since it expired; negative before that
    held: float  # seconds since its holder acquired it

    @property
    def name(self) -> str:
        return self.lease.metadata.name

    @property
    def holder(self) -> str:
        return self.lease.spec.holder_identity or ""

    def label(self, key: str) -> str:
        """Return the value of a label; empty without it."""
        return self.lease.metadata.labels.get(key, "")


def all_of(facts: Facts) -> list[Seen]:
    """Return Flotilla's leases in all namespaces. Raises NotKnown."""
    found = facts.leases.get()
    before = {_place(one): one for one in _leases(found.first)}
    ahead = facts.server.found.ahead if facts.server.found else 0.0
    return [_seen(one, before.get(_place(one)), facts.now, ahead) for one in _leases(found.last)]


def check(facts: Facts) -> Looked:
    """Check the leases of each running service; a silent one has a finding of its own."""
    by_service: dict[str, list[Seen]] = defaultdict(list)
    ours, shards = _ours(facts), len(pods_among(facts.streams.found or ()))
    for one in ours:
        if not _is_retired(one, shards):
            by_service[one.label(SERVICE_LABEL)].append(one)
    heard = facts.heartbeats.found
    for service in services(facts):
        speaking = [one for one in heard or () if one.beat.service == service]
        if speaking or heard is None:
            yield from _shards(service, by_service[service], speaking)
            yield from _members(by_service[service])
            yield from _twice(service, speaking)
    return f"{len(ours)} leases, {sum(one.alive for one in ours)} of them renewed meanwhile"


def _shards(service: str, leases: list[Seen], speaking: list[ReplicaHeartbeat]) -> Iterator[Finding]:
    number = _number(service, leases)
    for one in leases:
        if one.label(ROLE_LABEL) == SHARD and one.label(NUMBER_LABEL) in ("", number):
            yield from _shard(one, speaking)
    numbers = {one.label(NUMBER_LABEL) for one in leases if one.alive and one.holder} - {""}
    if len(numbers) > 1:
        who = "; ".join(f"{count}: {', '.join(_holders(leases, count))}" for count in sorted(numbers))
        said = f"its replicas disagree about the number of shards ({who}): some of them only stand by"
        advice = "start all replicas with the same --shards; a rolling update resolves it"
        yield broken("ShardsDisagree", service, said, advice)


def _shard(one: Seen, speaking: list[ReplicaHeartbeat]) -> Iterator[Finding]:
    about = f"lease {one.name}"
    advice = "see the service's log: it may lack rights to leases, or not reach the apiserver"
    if not one.holder:
        said = "it has no holder: the objects of this shard are not reconciled"
        yield broken("ShardWithoutHolder", about, said, advice)
    elif not one.alive and one.overdue > LATE_SECONDS:
        said = f"{one.holder} has not renewed it; it expired {span(one.overdue)} ago, and no replica took it over"
        yield broken("LeaseExpired", about, said, advice)
    elif one.alive and speaking and not any(_is_of(one.holder, beat) for beat in speaking):
        said = f"{one.holder} renews it, but sends no heartbeat on this bus"
        advice = "it is connected to another bus, or to none: compare --nats of both"
        yield broken("HolderNotHeard", about, said, advice)


def _members(leases: list[Seen]) -> Iterator[Finding]:
    """Report leases of dead members that a long-lived replica should have deleted."""
    longest = max((one.held for one in leases if one.alive), default=0.0)
    for one in leases:
        patience = 2 * FORGET_AFTER * (one.lease.spec.lease_duration_seconds or 0)
        if one.label(ROLE_LABEL) == MEMBER and not one.alive and min(one.overdue, longest) > patience:
            said = f"its replica is dead; it expired {span(one.overdue)} ago, and was not deleted"
            advice = "the service may lack the right to delete leases; `kubectl delete lease` is safe"
            yield warning("MemberLeaseLeft", f"lease {one.name}", said, advice)


def _twice(service: str, speaking: list[ReplicaHeartbeat]) -> Iterator[Finding]:
    """Report two replicas that both serve a shard, by their heartbeats."""
    serving: Mapping[str, list[str]] = defaultdict(list)
    for one in speaking:
        for shard in (*map(str, one.beat.shards), *one.beat.resources):
            serving[shard].append(one.beat.replica)
    for shard, replicas in serving.items():
        if len(replicas) > 1:
            said = f"{' and '.join(sorted(replicas))} both report that they serve it"
            advice = "they use different namespaces or different --shards: stop one of them"
            yield broken("TwoHolders", f"{service} shard {shard}", said, advice)


def _is_retired(one: Seen, shards: int) -> bool:
    """Report whether it is a lease of the watcher for a resource, or shard of pods, that is no longer published."""
    resources = {
        f"flotilla-{WATCHER}-{plural_on_bus(each)}.{each.group or 'core'}"
        for each in with_markers(max(shards, 1)).values()
    }
    watchers = one.label(SERVICE_LABEL) == WATCHER and one.label(ROLE_LABEL) == SHARD
    return watchers and one.name not in resources


def _number(service: str, leases: list[Seen]) -> str:
    """Return the number of shards, which the first shard's lease decides."""
    first = next((one for one in leases if one.name == f"flotilla-{service}-0"), None)
    return first.label(NUMBER_LABEL) if first else ""


def _holders(leases: list[Seen], number: str) -> list[str]:
    return sorted({one.holder for one in leases if one.alive and one.label(NUMBER_LABEL) == number})


def _is_of(holder: str, one: ReplicaHeartbeat) -> bool:
    return holder == one.beat.holder or holder.startswith(f"{one.beat.replica}-")


def _ours(facts: Facts) -> list[Seen]:
    return [one for one in all_of(facts) if one.lease.metadata.namespace == facts.namespace]


def _leases(documents: object) -> list[Lease]:
    return msgspec.convert(documents, type=list[Lease])


def _place(one: Lease) -> tuple[str, str]:
    return one.metadata.key


def _seen(one: Lease, before: Lease | None, now: datetime, ahead: float) -> Seen:
    """Compare with the apiserver's clock, because the holder's is not known."""
    alive = before is None or before.metadata.resource_version != one.metadata.resource_version
    renewed, acquired = (
        (now - datetime.fromisoformat(stamp)).total_seconds() + ahead if stamp else 0.0
        for stamp in (one.spec.renew_time, one.spec.acquire_time)
    )
    return Seen(one, alive, renewed - (one.spec.lease_duration_seconds or 0), acquired)
