"""Checks the apiserver (reachable, of a supported version), the CRDs (served, of this release), and all clocks.

Clocks are compared with the apiserver's, because it stamps all objects.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from flotilla_common.api.documents import Json, mappings, member, text
from flotilla_insight.doctor.facts import Facts
from flotilla_insight.doctor.finding import Finding, Looked, broken, warning
from flotilla_insight.durations import span
from flotilla_insight.installation.manifests import definitions
from flotilla_insight.installation.objects import is_leaving, is_true, name_of
from flotilla_insight.openkruise import covers

OLDEST_MINOR = 32
"""Minor version of Kubernetes 1; docs/operations.md names it."""

OFF_SECONDS = 10.0
"""Synchronised clocks differ by milliseconds; busy machines lag by some seconds."""

BADLY_OFF_SECONDS = 60.0

NODE_LATE_SECONDS = 120.0
"""A live node renews its lease every ten seconds, and counts as ready for up to fifty seconds without."""

_ADVICE = "synchronise the clock (NTP): grace periods, minReadySeconds and certificates depend on it"

APPLY = "`flotilla install` or `helm upgrade` fixes it"


def check_apiserver(facts: Facts) -> Looked:
    """Check that it answers, and is not too old."""
    if facts.server.found is None and not facts.server.why.startswith("not allowed"):
        advice = "check that it runs, and that KUBECONFIG names the right cluster; no other check was possible"
        yield broken("ApiserverUnreachable", "apiserver", facts.server.why, advice)
    version = facts.server.get().version
    found = re.match(r"v1\.(\d+)", version)
    if found and int(found[1]) < OLDEST_MINOR:
        said = f"it is {version}, and Flotilla needs 1.{OLDEST_MINOR} or newer"
        yield broken("ApiserverTooOld", "apiserver", said, "upgrade Kubernetes")
    return f"apiserver {version}"


def check_clocks(facts: Facts) -> Looked:
    """Compare all clocks with the apiserver's."""
    server = facts.server.get().ahead
    others = {one.who: one.ahead - server for one in facts.heartbeats.found or () if one.ahead is not None}
    for about, ahead in {"this machine": -server, **others}.items():
        if abs(ahead) > OFF_SECONDS:
            yield _off(about, ahead)
    ready = {text(member(one, "metadata").get("name")) for one in facts.nodes.get() if is_true(one, "Ready")}
    leases = facts.node_leases.found
    for lease in leases or ():
        yield from _node(lease, ready, facts.now, server)
    nodes = f"and {len(leases)} nodes" if leases is not None else f"but of no node: {facts.node_leases.why}"
    return f"clocks of apiserver, this machine, {len(others)} replicas {nodes}"


def _node(lease: Json, ready: set[str], now: datetime, server: float) -> Iterator[Finding]:
    name, renewed = text(member(lease, "metadata").get("name")), text(member(lease, "spec").get("renewTime"))
    if name not in ready or not renewed:
        return
    ahead = (datetime.fromisoformat(renewed) - now).total_seconds() - server
    if ahead > OFF_SECONDS or ahead < -NODE_LATE_SECONDS:
        yield _off(f"node {name}", ahead)


def _off(about: str, ahead: float) -> Finding:
    said = f"its clock is {span(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} the apiserver's"
    return (broken if abs(ahead) >= BADLY_OFF_SECONDS else warning)("ClockOff", about, said, _ADVICE)


def check_definitions(facts: Facts) -> Looked:
    """Check each CRD of this release."""
    live = facts.definitions.get()
    for wanted in definitions():
        name = name_of(wanted)
        if name in live:
            yield from _definition(f"CRD {name}", wanted, live[name])
        else:
            said = "the CRD does not exist: its kind is not served, and its objects were deleted with it"
            yield broken("CRDMissing", f"CRD {name}", said, APPLY)
    return f"{len(definitions())} of {len(facts.definitions.get())} CRDs"


def _definition(about: str, wanted: Json, live: Json) -> Iterator[Finding]:
    if is_leaving(live):
        since = text(member(live, "metadata").get("deletionTimestamp"))
        advice = "objects with finalizers block it; install again when it is gone"
        yield broken("CRDLeaving", about, f"it is being deleted since {since}", advice)
        return
    for condition in ("NamesAccepted", "Established"):
        if why := _not_true(live, condition):
            yield broken(
                "CRDNotServed", about, f"{condition} is not True: {why}", "another CRD may have the same names"
            )
    spec, want = member(live, "spec"), member(wanted, "spec")
    if lacking := set(_served(want)) - set(_served(spec)):
        yield broken("CRDVersions", about, f"it does not serve {', '.join(sorted(lacking))}", APPLY)
    elif _stored(spec) != _stored(want):
        said = f"objects are stored as {_stored(spec)}, and Flotilla reads and writes {_stored(want)}"
        yield broken("CRDVersions", about, said, APPLY)
    elif not covers(_schemas(spec), _schemas(want)):
        said = "its schema is not the one of this release: fields may be refused or dropped"
        yield warning("CRDOtherRelease", about, said, APPLY)
    if member(spec, "conversion").get("strategy") != member(want, "conversion").get("strategy", "None"):
        said = f"conversion is {member(spec, 'conversion').get('strategy')}: fields are lost between versions"
        yield broken("CRDConversion", about, said, APPLY)


def _not_true(live: Json, condition: str) -> str:
    """Return the message of a condition that is not True; empty if it is."""
    found = [one for one in mappings(member(live, "status").get("conditions")) if one.get("type") == condition]
    if found and found[0].get("status") == "True":
        return ""
    return text(found[0].get("message")) if found else "the apiserver has not set the condition"


def _served(spec: Json) -> Sequence[str]:
    return [text(one.get("name")) for one in mappings(spec.get("versions")) if one.get("served")]


def _schemas(spec: Json) -> Json:
    return {text(one.get("name")): member(one, "schema") for one in mappings(spec.get("versions"))}


def _stored(spec: Json) -> str:
    return next((text(one.get("name")) for one in mappings(spec.get("versions")) if one.get("storage")), "nothing")
