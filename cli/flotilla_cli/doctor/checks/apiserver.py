"""Checks the apiserver (reachable, of a supported version) and all clocks.

Clocks are compared with the apiserver's, because it stamps all objects.
"""

import re
from collections.abc import Iterator
from datetime import datetime

from flotilla_cli.doctor.facts import Facts
from flotilla_cli.doctor.finding import Finding, Looked, broken, warning
from flotilla_cli.install.live import is_true
from flotilla_cli.output import span
from flotilla_common.api.documents import Json, member, text

OLDEST_MINOR = 32
"""Minor version of Kubernetes 1; docs/operations.md names it."""

OFF_SECONDS = 10.0
"""Synchronised clocks differ by milliseconds; busy machines lag by some seconds."""

BADLY_OFF_SECONDS = 60.0

NODE_LATE_SECONDS = 120.0
"""A live node renews its lease every ten seconds, and counts as ready for up to fifty seconds without."""

_ADVICE = "synchronise the clock (NTP): grace periods, minReadySeconds and certificates depend on it"


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
    others = {one.who: one.ahead - server for one in facts.heard.found or () if one.ahead is not None}
    for about, ahead in {"this machine": -server, **others}.items():
        if abs(ahead) > OFF_SECONDS:
            yield _off(about, ahead)
    ready = {text(member(one, "metadata").get("name")) for one in facts.nodes.get() if is_true(one, "Ready")}
    for lease in facts.node_leases.get():
        yield from _node(lease, ready, facts.now, server)
    return f"clocks of apiserver, this machine, {len(others)} replicas and {len(facts.node_leases.get())} nodes"


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
