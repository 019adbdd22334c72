"""All checks, in the order in which their findings are read: earlier problems explain later ones."""

from collections.abc import Callable, Sequence

import msgspec

from flotilla_cli.doctor.checks import (
    access,
    agents,
    apiserver,
    bus,
    certificates,
    definitions,
    leases,
    leftovers,
    services,
    versions,
    webhook,
)
from flotilla_cli.doctor.facts import Facts, NotKnown
from flotilla_cli.doctor.finding import Finding, Looked, Outcome, broken
from flotilla_cli.install.kinds import name_of
from flotilla_cli.install.manifests import definitions as all_definitions


class Check(msgspec.Struct, frozen=True):
    """A check with its name and title."""

    name: str
    title: str
    look: Callable[[Facts], Looked]


CHECKS = (
    Check("apiserver", "the apiserver answers, and is not too old", apiserver.check_apiserver),
    Check("definitions", "the CRDs are there, served, and of this release", definitions.check),
    Check("pods", "the chart's pods run", services.check_pods),
    Check("bus", "the bus answers, is closed to strangers, and has room", bus.check_bus),
    Check("services", "every service lives and is ready", services.check_services),
    Check("webhook", "the apiserver reaches the webhook, and it answers rightly", webhook.check_webhook),
    Check("registration", "the webhook configurations are whole", webhook.check_registration),
    Check("certificates", "certificates are believed, and last", certificates.check),
    Check("leases", "every shard is held by one replica that lives", leases.check),
    Check("streams", "the streams are as they must be, and current", bus.check_streams),
    Check("mirrors", "what services see is what the apiserver has", bus.check_mirrors),
    Check("agents", "every node agent lives and has a container runtime", agents.check),
    Check("access", "every service has the rights that it uses, and no more", access.check),
    Check("versions", "one release everywhere", versions.check_versions),
    Check("gates", "gates and settings agree", versions.check_gates),
    Check("clocks", "clocks agree", apiserver.check_clocks),
    Check("leftovers", "nobody else is at work on our kinds", leftovers.check),
)


def examine(facts: Facts) -> Sequence[Outcome]:
    """Run all checks over one look.

    If nothing is installed, or the apiserver does not answer, the other checks are left out.
    """
    first = _made(CHECKS[0], facts)
    if first.findings:
        return [first]
    if absent := _not_installed(facts):
        return [first, absent]
    return [first, *(_made(check, facts) for check in CHECKS[1:])]


def _made(check: Check, facts: Facts) -> Outcome:
    outcome, looked = Outcome(check=check.name, title=check.title), check.look(facts)
    found: list[Finding] = []
    try:
        while True:
            found.append(next(looked))
    except StopIteration as end:
        return msgspec.structs.replace(outcome, seen=end.value, findings=found)
    except NotKnown as why:
        return msgspec.structs.replace(outcome, not_checked=str(why), findings=found)


def _not_installed(facts: Facts) -> Outcome | None:
    ours = {name_of(one) for one in all_definitions()}
    if facts.definitions.found is None or ours & facts.definitions.found.keys():
        return None
    advice = "`flotilla install`, or `helm install flotilla helm/flotilla` (docs/operations.md)"
    said = "none of Flotilla's CRDs is there"
    finding = broken("NotInstalled", "cluster", said, advice)
    return Outcome(check="definitions", title="Flotilla is installed", findings=[finding])
