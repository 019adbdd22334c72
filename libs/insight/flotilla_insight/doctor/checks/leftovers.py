"""Checks for others: OpenKruise, a second Flotilla, webhooks without a backend, kinds without a controller."""

from collections.abc import Iterator

from flotilla_common.api.documents import Json, mappings, member, sequence, text
from flotilla_common.api.webhooks import path_of
from flotilla_common.control.shards import SERVICE_LABEL
from flotilla_insight.doctor.checks.leases import all_of
from flotilla_insight.doctor.expected import is_ours
from flotilla_insight.doctor.facts import Backend, Facts
from flotilla_insight.doctor.finding import Finding, Looked, broken, warning
from flotilla_insight.installation.objects import name_of, namespace_of
from flotilla_insight.openkruise import DAEMON, GROUPS, MANAGER, TAKEN, held_by, is_theirs

_KRUISE_PATHS = ("/mutate-apps-kruise-io", "/validate-apps-kruise-io", "/mutate-pod")
"""Paths that entries of OpenKruise and of Flotilla call."""

_ADOPT = "`flotilla adopt` takes the cluster over from OpenKruise; two managers write the same pods"
_DELETE = "delete the configuration if its owner is gone: `kubectl delete {kind} {name}`"


def check(facts: Facts) -> Looked:
    """Run these checks."""
    yield from _openkruise(facts)
    yield from _second(facts)
    for configuration in facts.hooks.get():
        if not is_ours(configuration):
            yield from _stranger(configuration, facts)
    for name, count in facts.foreign.get().items():
        if count:
            said = f"there are {'100 or more' if count >= 100 else count} objects, and no controller reconciles them"
            advice = "Flotilla does not serve this kind: delete what is not needed (docs/taking-over.md)"
            yield warning("KindNotServed", f"CRD {name}", said, advice)
    return (
        f"{len(facts.hooks.get())} webhook configurations and {len(facts.workloads.get())} workloads of others and ours"
    )


def _openkruise(facts: Facts) -> Iterator[Finding]:
    """Report OpenKruise's manager, daemon, and lease."""
    for live in facts.workloads.get():
        if not is_theirs(live):
            continue
        place = (live["kind"], namespace_of(live), name_of(live))
        if place == (MANAGER.resource.kind, MANAGER.namespace, MANAGER.name):
            replicas = member(live, "spec").get("replicas", 1)
            if replicas:
                yield broken("OpenKruiseRuns", str(MANAGER), f"its manager has {replicas} replicas", _ADOPT)
        elif place == (DAEMON.resource.kind, DAEMON.namespace, DAEMON.name):
            selector = member(live, "spec", "template", "spec", "nodeSelector")
            wanted = member(live, "status").get("desiredNumberScheduled", 1)
            if TAKEN not in selector and wanted:
                yield broken("OpenKruiseRuns", str(DAEMON), f"its daemon runs on {wanted} nodes", _ADOPT)
    lease = facts.leader.get()
    if lease and (holder := held_by(lease, facts.now)):
        said = f"{holder} holds and renews it: a manager of OpenKruise is running somewhere"
        yield broken("OpenKruiseRuns", "lease kruise-manager", said, _ADOPT)


def _second(facts: Facts) -> Iterator[Finding]:
    """Report renewed leases and a chart in another namespace."""
    leases = all_of(facts)
    elsewhere = {
        one.lease.metadata.namespace
        for one in leases
        if one.alive and one.holder and one.label(SERVICE_LABEL) and one.lease.metadata.namespace != facts.namespace
    }
    charts = {namespace_of(one) for one in facts.workloads.get() if not is_theirs(one) or "flotilla" in name_of(one)}
    for namespace in sorted(elsewhere | (charts - {facts.namespace, MANAGER.namespace})):
        said = f"services of Flotilla run there and in {facts.namespace}: both reconcile all objects"
        advice = "remove one of the two (`helm uninstall`, or stop its `flotilla run`)"
        yield broken("SecondInstallation", f"namespace {namespace}", said, advice)


def _stranger(configuration: Json, facts: Facts) -> Iterator[Finding]:
    """Report the first foreign entry that concerns our kinds, or rejects pods for want of a backend."""
    name, kind = name_of(configuration), text(configuration.get("kind"))
    for entry in mappings(configuration.get("webhooks")):
        if why := _in_the_way(entry, facts):
            code, said = why
            advice = _DELETE.format(kind=kind.lower(), name=name)
            yield broken(code, f"{kind} {name}", f"entry {text(entry.get('name'))} {said}", advice)
            return


def _in_the_way(entry: Json, facts: Facts) -> tuple[str, str] | None:
    """Return code and text of the problem, or None."""
    if _asks_about(entry, GROUPS, "") and path_of(entry).startswith(_KRUISE_PATHS):
        return "ForeignWebhook", "belongs to another installation of our kinds"
    if entry.get("failurePolicy") == "Fail" and _is_dead(entry, facts) and _asks_about(entry, GROUPS, "pods"):
        return "WebhookNobodyAnswers", "leads to a Service that does not exist, so the requests are rejected"
    return None


def _asks_about(entry: Json, groups: tuple[str, ...], pods: str) -> bool:
    for rule in mappings(entry.get("rules")):
        asked, resources = sequence(rule.get("apiGroups")), sequence(rule.get("resources"))
        if set(asked) & set(groups) or (pods and {"", "*"} & set(asked) and {pods, "*", "*/*"} & set(resources)):
            return True
    return False


def _is_dead(entry: Json, facts: Facts) -> bool:
    service = member(entry, "clientConfig", "service")
    place = text(service.get("namespace")), text(service.get("name"))
    return bool(service) and not facts.backends.get().get(place, Backend(exists=True)).exists
