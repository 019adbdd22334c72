"""Releases: one everywhere, unless something is being replaced right now."""

from collections import Counter
from collections.abc import Iterator

from flotilla_cli.doctor.facts import Facts
from flotilla_cli.doctor.finding import WARNING, Finding
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.bus.heartbeat import VERSION

CHART = "app.kubernetes.io/version"

_UPGRADE = "finish the upgrade: `flotilla install` (or `helm upgrade`), then restart the replicas of the old release"


def seen(facts: Facts) -> str:
    """What was looked at."""
    counted = Counter(one.beat.version for one in facts.heard.get())
    return f"releases: {', '.join(f'{count} of {version}' for version, count in counted.items()) or 'nobody speaks'}"


def check(facts: Facts) -> Iterator[Finding]:
    """Replicas against the majority, this command against them, the chart against its pods."""
    if is_rolling(facts):
        return
    counted = Counter(one.beat.version for one in facts.heard.get())
    if not counted:
        return
    usual = counted.most_common(1)[0][0]
    for one in facts.heard.get():
        if one.beat.version != usual:
            said = f"it is of release {one.beat.version or 'unknown'}, and most others of {usual}"
            about = f"{one.beat.service} {one.beat.replica}"
            yield Finding(code="VersionSkew", about=about, text=said, advice=_UPGRADE, severity=WARNING)
    if usual != VERSION:
        said = f"it is of release {VERSION}, and what runs is {usual}: this page may ask for what that release lacks"
        advice = f"use the `flotilla` of release {usual}"
        yield Finding(code="CommandOtherRelease", about="this command", text=said, advice=advice, severity=WARNING)
    chart = {strings(member(one, "metadata").get("labels")).get(CHART, "") for one in facts.workloads.found or ()}
    for version in sorted(chart - {"", usual}):
        said = f"it is of release {version}, and what runs is {usual}"
        yield Finding(code="ChartOtherRelease", about="chart", text=said, advice=_UPGRADE, severity=WARNING)


def is_rolling(facts: Facts) -> bool:
    """Whether the chart's pods are being replaced now: old and new ones are side by side then."""
    return any(map(_is_rolling, facts.workloads.found or ()))


def _is_rolling(workload: Json) -> bool:
    spec, status = member(workload, "spec"), member(workload, "status")
    if status.get("observedGeneration", 0) < member(workload, "metadata").get("generation", 0):
        return True
    if workload["kind"] == "DaemonSet":
        return status.get("updatedNumberScheduled", 0) < status.get("desiredNumberScheduled", 0)
    wanted, there = spec.get("replicas", 1), status.get("replicas", 0)
    return status.get("updatedReplicas", 0) < wanted or there > wanted
