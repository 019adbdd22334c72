"""All checks, in the order in which their findings are read: what is wrong above explains much of what is below."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from flotilla_cli.doctor.checks import (
    access,
    agents,
    apiserver,
    bus,
    certificates,
    clocks,
    definitions,
    gates,
    leases,
    leftovers,
    mirrors,
    pods,
    registration,
    services,
    streams,
    versions,
    webhook,
)
from flotilla_cli.doctor.facts import Facts, NotKnown
from flotilla_cli.doctor.finding import Finding, Outcome
from flotilla_cli.install.kinds import name_of
from flotilla_cli.install.manifests import definitions as all_definitions


class Check(msgspec.Struct, frozen=True):
    """One check: what it finds, and what it looked at. Both raise NotKnown for want of a fact."""

    name: str
    title: str
    find: Callable[[Facts], Iterable[Finding]]
    seen: Callable[[Facts], str]


CHECKS = (
    Check("apiserver", "the apiserver answers, and is not too old", apiserver.check, apiserver.seen),
    Check("definitions", "the CRDs are there, served, and of this release", definitions.check, definitions.seen),
    Check("pods", "the chart's pods run", pods.check, pods.seen),
    Check("bus", "the bus answers, is closed to strangers, and has room", bus.check, bus.seen),
    Check("services", "every service lives and is ready", services.check, services.seen),
    Check("webhook", "the apiserver reaches the webhook, and it answers rightly", webhook.check, webhook.seen),
    Check("registration", "the webhook configurations are whole", registration.check, registration.seen),
    Check("certificates", "certificates are believed, and last", certificates.check, certificates.seen),
    Check("leases", "every shard is held by one replica that lives", leases.check, leases.seen),
    Check("streams", "the streams are as they must be, and current", streams.check, streams.seen),
    Check("mirrors", "what services see is what the apiserver has", mirrors.check, mirrors.seen),
    Check("agents", "every node agent lives and has a container runtime", agents.check, agents.seen),
    Check("access", "every service has the rights that it uses, and no more", access.check, access.seen),
    Check("versions", "one release everywhere", versions.check, versions.seen),
    Check("gates", "gates and settings agree", gates.check, gates.seen),
    Check("clocks", "clocks agree", clocks.check, clocks.seen),
    Check("leftovers", "nobody else is at work on our kinds", leftovers.check, leftovers.seen),
)


def examine(facts: Facts) -> Sequence[Outcome]:
    """All checks over one look. Where nothing is installed, or no apiserver answers, that is all there is to say."""
    first = _made(CHECKS[0], facts)
    if first.findings:
        return [first]
    if absent := _not_installed(facts):
        return [first, absent]
    return [first, *(_made(check, facts) for check in CHECKS[1:])]


def _made(check: Check, facts: Facts) -> Outcome:
    found: list[Finding] = []
    try:
        found.extend(check.find(facts))
        return Outcome(check=check.name, title=check.title, seen=check.seen(facts), findings=found)
    except NotKnown as why:
        return Outcome(check=check.name, title=check.title, not_checked=str(why), findings=found)


def _not_installed(facts: Facts) -> Outcome | None:
    ours = {name_of(one) for one in all_definitions()}
    if facts.definitions.found is None or ours & facts.definitions.found.keys():
        return None
    advice = "`flotilla install`, or `helm install flotilla helm/flotilla` (docs/operations.md)"
    said = "none of Flotilla's CRDs is there"
    finding = Finding(code="NotInstalled", about="cluster", text=said, advice=advice)
    return Outcome(check="definitions", title="Flotilla is installed", findings=[finding])
