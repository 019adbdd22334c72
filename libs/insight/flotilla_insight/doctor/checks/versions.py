"""Checks what must be the same everywhere, except during a rollout.

Releases, gates, the kinds that are served, managed fields.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from flotilla_common.api.documents import Json, member, strings
from flotilla_common.bus.heartbeat import VERSION
from flotilla_common.gates import Gates
from flotilla_insight.doctor.facts import Facts, ReplicaHeartbeat
from flotilla_insight.doctor.finding import Finding, Looked, broken, warning
from flotilla_insight.installation.manifests import NO_MANAGED_FIELDS

CHART = "app.kubernetes.io/version"

_UPGRADE = "finish the upgrade: `flotilla install` (or `helm upgrade`), then restart the replicas of the old release"

_SAME = "set the same for all services and `flotilla install` (or the chart's `featureGates`), then restart them"


def check_versions(facts: Facts) -> Looked:
    """Compare replicas with the majority, this command with them, the chart with its pods."""
    counted = Counter(one.beat.version for one in facts.heartbeats.get())
    if counted and not is_rolling(facts):
        yield from _skewed(facts, counted.most_common(1)[0][0])
    return f"releases: {', '.join(f'{count} of {version}' for version, count in counted.items()) or 'no heartbeats'}"


def _skewed(facts: Facts, usual: str) -> Iterator[Finding]:
    for one in facts.heartbeats.get():
        if one.beat.version != usual:
            said = f"it is of release {one.beat.version or 'unknown'}, most others are of {usual}"
            yield warning("VersionSkew", one.who, said, _UPGRADE)
    if usual != VERSION:
        said = f"it is of release {VERSION}, the services are of {usual}: its checks may not fit that release"
        advice = f"use the `flotilla` of release {usual}"
        yield warning("CommandOtherRelease", "this command", said, advice)
    chart = {strings(member(one, "metadata").get("labels")).get(CHART, "") for one in facts.workloads.found or ()}
    for version in sorted(chart - {"", usual}):
        said = f"it is of release {version}, the services are of {usual}"
        yield warning("ChartOtherRelease", "chart", said, _UPGRADE)


def is_rolling(facts: Facts) -> bool:
    """Report whether the chart's pods are being replaced now: old and new ones coexist then."""
    return any(map(_is_rolling, facts.workloads.found or ()))


def _is_rolling(workload: Json) -> bool:
    spec, status = member(workload, "spec"), member(workload, "status")
    if status.get("observedGeneration", 0) < member(workload, "metadata").get("generation", 0):
        return True
    if workload["kind"] == "DaemonSet":
        return status.get("updatedNumberScheduled", 0) < status.get("desiredNumberScheduled", 0)
    wanted, there = spec.get("replicas", 1), status.get("replicas", 0)
    return status.get("updatedReplicas", 0) < wanted or there > wanted


def check_gates(facts: Facts) -> Looked:
    """Compare replicas with each other, and with the installed manifests."""
    heard = [one for one in facts.heartbeats.get() if one.beat.gates is not None]
    for one in heard:
        yield from _unknown(one)
    if not is_rolling(facts):
        yield from _differing("GatesDiffer", "feature gates", {one.who: _gates(one) for one in heard})
        yield from _differing("KindsDiffer", "CUSTOM_RESOURCE_ENABLE", {one.who: _kinds(one) for one in heard})
    yield from _managed_fields(facts, heard)
    gates = sorted({one.beat.gates or "" for one in heard})
    return f"gates: {' | '.join(one or 'all defaults' for one in gates) or 'not reported'}"


def _unknown(one: ReplicaHeartbeat) -> Iterator[Finding]:
    try:
        Gates.parse(one.beat.gates or "")
    except ValueError as error:
        said = f"{error}: unknown in this release"
        yield warning("GateUnknown", one.who, said, _SAME)


def _differing(code: str, what: str, given: Mapping[str, frozenset[str]]) -> Iterator[Finding]:
    """Report names that only some replicas have."""
    common = frozenset(name for own in given.values() for name in own if all(name in each for each in given.values()))
    differing = {who: sorted(own - common) for who, own in given.items() if own - common}
    if differing:
        others = sorted(given.keys() - differing.keys())
        said = "; ".join(f"{who} has {', '.join(own)}" for who, own in sorted(differing.items()))
        rest = f"; {', '.join(others)} {'does' if len(others) == 1 else 'do'} not" if others else ""
        yield broken(code, what, said + rest, _SAME)


def _managed_fields(facts: Facts, heard: list[ReplicaHeartbeat]) -> Iterator[Finding]:
    kept = [one.who for one in heard if any(_keeps(one, plural) for plural in one.beat.planning)]
    if kept and NO_MANAGED_FIELDS in facts.policies.get():
        said = (
            f"{', '.join(kept)} keep metadata.managedFields, and policy {NO_MANAGED_FIELDS} removes them from new pods"
        )
        advice = "`flotilla install --keep-managed-fields` removes the policy; or remove the flag from the services"
        yield warning("ManagedFieldsDiffer", "managed fields", said, advice)


def _keeps(one: ReplicaHeartbeat, plural: str) -> bool:
    return member(one.beat.planning, plural, "options").get("drop_field_owners") is False


def _gates(one: ReplicaHeartbeat) -> frozenset[str]:
    return frozenset(filter(None, (one.beat.gates or "").split(",")))


def _kinds(one: ReplicaHeartbeat) -> frozenset[str]:
    return frozenset(filter(None, (kind.strip() for kind in one.beat.kinds.split(","))))
