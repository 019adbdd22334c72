"""Clocks: the apiserver's is what all others are measured by, because it stamps everything."""

from collections.abc import Iterator
from datetime import datetime

from flotilla_cli.ages import span
from flotilla_cli.doctor.facts import Facts
from flotilla_cli.doctor.finding import BROKEN, WARNING, Finding
from flotilla_common.api.documents import Json, mappings, member, text

OFF_SECONDS = 10.0
"""Synchronised clocks differ by milliseconds; busy machines are some seconds late."""

BADLY_OFF_SECONDS = 60.0

NODE_LATE_SECONDS = 120.0
"""A node that lives renews its lease every ten seconds, and counts as ready up to fifty seconds without."""

_ADVICE = "synchronise the clock (NTP): grace periods, minReadySeconds and certificates go by it"


def seen(facts: Facts) -> str:
    """What was looked at."""
    clocks = sum(one.ahead is not None for one in facts.heard.found or ())
    return f"clocks of apiserver, this machine, {clocks} replicas and {len(facts.node_leases.found or ())} nodes"


def check(facts: Facts) -> Iterator[Finding]:
    """Everybody's clock against the apiserver's."""
    server = facts.server.get().ahead
    others = {
        f"{one.beat.service} {one.beat.replica}": one.ahead - server
        for one in facts.heard.found or ()
        if one.ahead is not None
    }
    if abs(server) > OFF_SECONDS:
        yield _off("this machine", -server, "the apiserver's")
    for about, ahead in others.items():
        if abs(ahead) > OFF_SECONDS:
            yield _off(about, ahead, "the apiserver's")
    ready = {text(member(one, "metadata").get("name")) for one in facts.nodes.get() if is_ready(one)}
    for lease in facts.node_leases.get():
        yield from _node(lease, ready, facts.now, server)


def is_ready(live: Json) -> bool:
    """Whether a Node, or a pod, is."""
    conditions = mappings(member(live, "status").get("conditions"))
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def _node(lease: Json, ready: set[str], now: datetime, server: float) -> Iterator[Finding]:
    name, renewed = text(member(lease, "metadata").get("name")), text(member(lease, "spec").get("renewTime"))
    if name not in ready or not renewed:
        return
    ahead = (datetime.fromisoformat(renewed) - now).total_seconds() - server
    if ahead > OFF_SECONDS or ahead < -NODE_LATE_SECONDS:
        yield _off(f"node {name}", ahead, "the apiserver's")


def _off(about: str, ahead: float, whose: str) -> Finding:
    said = f"its clock is {span(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} {whose}"
    severity = BROKEN if abs(ahead) >= BADLY_OFF_SECONDS else WARNING
    return Finding(code="ClockOff", about=about, text=said, advice=_ADVICE, severity=severity)
