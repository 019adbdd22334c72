"""All checks, in the order in which their findings are read: earlier problems explain later ones."""

from collections.abc import Callable, Sequence

import msgspec

from flotilla_insight.doctor.checks import (
    access,
    agents,
    apiserver,
    bus,
    certificates,
    leases,
    leftovers,
    services,
    versions,
    webhook,
)
from flotilla_insight.doctor.facts import Facts, NotKnown
from flotilla_insight.doctor.finding import Finding, Looked, Outcome, broken, warning
from flotilla_insight.installation.manifests import definitions as all_definitions
from flotilla_insight.installation.objects import name_of


class Check(msgspec.Struct, frozen=True):
    """A check with its name and title."""

    name: str
    title: str
    look: Callable[[Facts], Looked]


CHECKS = (
    Check("apiserver", "the apiserver answers, and its version is supported", apiserver.check_apiserver),
    Check("definitions", "the CRDs exist, are served, and match this release", apiserver.check_definitions),
    Check("pods", "the chart's pods are running", services.check_pods),
    Check("bus", "the bus answers, requires credentials, and has free storage", bus.check_bus),
    Check("services", "every service is alive and ready", services.check_services),
    Check("webhook", "the apiserver reaches the webhook, and gets correct responses", webhook.check_webhook),
    Check("registration", "the webhook configurations are complete", webhook.check_registration),
    Check("certificates", "certificates are trusted and not about to expire", certificates.check),
    Check("leases", "every shard is held by exactly one live replica", leases.check),
    Check("streams", "the streams are configured correctly, and current", bus.check_streams),
    Check("mirrors", "services see the objects that the apiserver has", bus.check_mirrors),
    Check("agents", "every node agent is alive and reaches its container runtime", agents.check),
    Check("access", "every service has the rights that it uses, and no more", access.check),
    Check("versions", "all parts are of one release", versions.check_versions),
    Check("gates", "gates and settings agree", versions.check_gates),
    Check("clocks", "clocks agree", apiserver.check_clocks),
    Check("leftovers", "nothing else manages our kinds", leftovers.check),
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
    except Exception as fault:  # noqa: BLE001 - objects may hold anything, and one of them must not end all checks
        return msgspec.structs.replace(outcome, findings=[*found, _failed(check, fault)])


def _failed(check: Check, fault: Exception) -> Finding:
    said = f"the check ended with {type(fault).__name__}: {fault}"
    return warning("CheckFailed", check.name, said, "report it, with the output of `flotilla doctor -o json`")


def _not_installed(facts: Facts) -> Outcome | None:
    ours = {name_of(one) for one in all_definitions()}
    if facts.definitions.found is None or ours & facts.definitions.found.keys():
        return None
    advice = "`flotilla install`, or `helm install flotilla helm/flotilla` (docs/operations.md)"
    said = "none of Flotilla's CRDs exists"
    finding = broken("NotInstalled", "cluster", said, advice)
    return Outcome(check="definitions", title="Flotilla is installed", findings=[finding])
