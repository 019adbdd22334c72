"""Checks the webhook by dry runs, and its registration.

The apiserver must reach it, and it must validate, default and convert. The webhook configurations and the conversion of
the CRDs must be complete, of this release, and with one authority.

The running webhook generates the entries from the annotation `template` and those for pods from its rules, so changes
by an administrator there are intended. Nothing repairs a template that lacks entries, nor, while the webhook is down,
entries that differ from it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from flotilla_common.api.documents import Json, mappings, member, sequence, strings, text
from flotilla_common.api.podrules import EVICTION_ENTRY, POD_CHECK_ENTRY, RULES, check_entries, decoded, pod_entries
from flotilla_common.api.webhooks import (
    MUTATING_CONFIGURATION,
    NOT_OURS,
    VALIDATING_CONFIGURATION,
    mutating_entries,
    path_of,
    validating_entries,
)
from flotilla_common.gates import Gates
from flotilla_insight.doctor.checks.apiserver import APPLY
from flotilla_insight.doctor.expected import is_ours
from flotilla_insight.doctor.facts import Facts, Probe
from flotilla_insight.doctor.finding import Finding, Looked, broken, warning
from flotilla_insight.doctor.gather.cluster import INVALID, OLD, VALID
from flotilla_insight.installation.crds import is_served
from flotilla_insight.installation.endpoint import clients, services_behind, template_of
from flotilla_insight.installation.objects import name_of

_UNREACHED = re.compile(r"failed calling webhook|conversion webhook for .* failed|failed to call webhook")
_DENIED = re.compile(r'admission webhook "([^"]+)" denied the request')
_OURS = "vcloneset.kb.io"
_ADVICE = (
    "does it run (`flotilla status`, its pods, its log)? is the address right (`kubectl get "
    "mutatingwebhookconfiguration kruise-mutating-webhook-configuration -o yaml`)? may the apiserver connect there?"
)
_CALLERS = "--webhook-client-ca"
_TRUST = (
    "the caBundle is not that of the webhook: restart the webhook, which writes it; or find out what else writes it"
)

_SWITCHED = frozenset({"vingress.kb.io", "vservice.kb.io"})
"""Entries that a gate removes."""

_RUN = "the running webhook repairs this within seconds: start it"


def check_webhook(facts: Facts) -> Looked:
    """Check the results of all dry runs. An unreachable webhook is reported once."""
    if "clonesets.apps.kruise.io" in (facts.definitions.found or {"clonesets.apps.kruise.io": {}}):
        probes = {probe.name: probe for probe in facts.probes.get()}
        unreached = next((probe for probe in probes.values() if _unreached(probe)), None)
        yield from [_unreachable(unreached, facts)] if unreached else _behaviour(probes)
    answered = f"{len(facts.probes.get())} dry runs that the webhook answered"
    checks = {one.beat.checks_callers for one in facts.heartbeats.found or () if one.beat.service == "webhook"}
    if False in checks:
        return f"{answered}; it cannot tell the apiserver from other clients, and answers all of them ({_CALLERS})"
    return f"{answered}, and it answers only the apiserver" if checks == {True} else answered


def _unreached(probe: Probe) -> bool:
    return not probe.code or bool(_UNREACHED.search(probe.message))


def _unreachable(probe: Probe, facts: Facts) -> Finding:
    untrusted = "x509:" in probe.message or "tls:" in probe.message
    said = f"the apiserver {'does not trust' if untrusted else 'does not reach'} the webhook: {probe.message}"
    return broken(
        "WebhookUntrusted" if untrusted else "WebhookUnreachable",
        "webhook",
        "; ".join([said, *_what_stops(facts)]),
        _TRUST if untrusted else _ADVICE,
    )


def _what_stops(facts: Facts) -> Iterator[str]:
    """Yield what is impossible for pods meanwhile, by the entries in use that their requests go through."""
    hooks = [hook for one in facts.hooks.found or () if is_ours(one) for hook in mappings(one.get("webhooks"))]
    stopping = {text(hook.get("name")) for hook in hooks if hook.get("failurePolicy") != "Ignore"}
    if stopping & {POD_CHECK_ENTRY, EVICTION_ENTRY}:
        yield "until then, pods that a PodUnavailableBudget protects can be neither deleted nor evicted"


def _behaviour(probes: dict[str, Probe]) -> Iterator[Finding]:
    invalid, valid, old = probes[INVALID], probes[VALID], probes[OLD]
    if invalid.code == 201:
        yield _finding(
            "WebhookDoesNotValidate", "a CloneSet whose selector does not match its template was not refused"
        )
    elif (denied := _DENIED.search(invalid.message)) is None or denied[1] != _OURS:
        yield _finding("WebhookDoesNotValidate", f"the refusal of an invalid CloneSet is not ours: {invalid.message}")
    if valid.code != 201:
        yield _finding("WebhookRefuses", f"a valid CloneSet was refused: {valid.message}")
    elif "revisionHistoryLimit" not in member(valid.body, "spec"):
        yield _finding("WebhookDoesNotDefault", "the defaults of a CloneSet were not filled in")
    if valid.code == 201 and old.code != 201:
        yield _finding("WebhookDoesNotConvert", f"a CloneSet of v1alpha1 was refused: {old.message}")


def _finding(code: str, said: str) -> Finding:
    return broken(code, "webhook", said, _ADVICE)


def check_registration(facts: Facts) -> Looked:
    """Check both configurations, their backends, and that the installation's namespace is exempt."""
    live = {name_of(one): one for one in facts.hooks.get() if is_ours(one)}
    wanted = {
        MUTATING_CONFIGURATION: mutating_entries(),
        VALIDATING_CONFIGURATION: [one for one in validating_entries(Gates.parse("")) if one["name"] not in _SWITCHED],
    }
    for name, entries in wanted.items():
        if name not in live:
            yield broken("WebhookConfigurationMissing", name, "it does not exist: objects are not validated", APPLY)
            continue
        yield from _complete(name, live[name], entries)
        yield from _backed(facts, name, live[name])
    definitions = filter(is_served, facts.definitions.get().values())
    yield from _one_authority([*live.values(), *definitions])
    yield from _exempt(facts)
    entries = sum(len(mappings(one.get("webhooks"))) for one in facts.hooks.get() if is_ours(one))
    return f"2 webhook configurations with {entries} entries"


def _complete(name: str, live: Json, wanted: list[Json]) -> Iterator[Finding]:
    template, entries = _named(template_of(live)), _named(mappings(live.get("webhooks")))
    source = template or entries
    if lacking := sorted(one["name"] for one in wanted if one["name"] not in source):
        said = f"it lacks {', '.join(lacking)}: these kinds are not validated"
        yield broken("WebhookEntriesMissing", name, said, APPLY)
    of_other_release = [
        one["name"] for one in wanted if one["name"] in source and _asks(source[one["name"]]) != _asks(one)
    ]
    if of_other_release:
        said = f"{', '.join(of_other_release)} have other rules than in this release"
        yield warning("WebhookEntriesOtherRelease", name, said, APPLY)
    of_pods = pod_entries if name == MUTATING_CONFIGURATION else check_entries
    should = {**template, **_named(of_pods(decoded(text(member(live, "metadata", "annotations").get(RULES)))))}
    differing = sorted(key for key in should if key in entries and _bare(entries[key]) != _bare(should[key]))
    absent = sorted(key for key in should if key not in entries and key not in _SWITCHED)
    if differing or absent:
        changed = f"changed: {', '.join(differing)}" if differing else ""
        said = "; ".join(filter(None, (changed, f"absent: {', '.join(absent)}" if absent else "")))
        yield broken("WebhookEntriesChanged", name, f"entries are not as they were installed ({said})", _RUN)


def _backed(facts: Facts, name: str, live: Json) -> Iterator[Finding]:
    """Check the Services behind the entries, if there are any."""
    for place in sorted(services_behind(live)):
        backend = facts.backends.get()[place]
        where = "/".join(place)
        if not backend.exists:
            yield broken("WebhookServiceMissing", name, f"it leads to Service {where}, which does not exist", APPLY)
        elif not backend.ready:
            said = f"Service {where} has no endpoint that is ready"
            yield broken("WebhookServiceEmpty", name, said, "see why the webhook's pods are not ready")


def _one_authority(documents: list[Json]) -> Iterator[Finding]:
    """Check that all entries have the same readable caBundle."""
    bundles = {
        f"{name_of(one)} {entry}".strip(): text(client.get("caBundle"))
        for one in documents
        for entry, client in clients(one).items()
    }
    counted = Counter(bundles.values())
    for bundle, _ in counted.most_common()[1:]:
        which = sorted(name for name, held in bundles.items() if held == bundle)
        what = "no caBundle" if not bundle else "another caBundle than the others"
        said = f"{what}: {', '.join(which[:3])}{f' and {len(which) - 3} more' if len(which) > 3 else ''}"
        yield broken("CABundleDiffers", which[0], said, _RUN)


def _exempt(facts: Facts) -> Iterator[Finding]:
    """Check the namespace: the installation's own pods must start while the webhook is down."""
    labels = strings(member(facts.home.get(), "metadata").get("labels"))
    key, values = text(NOT_OURS["key"]), sequence(NOT_OURS["values"])
    if facts.home.get() and labels.get(key) not in values:
        said = f"it lacks the label {key}={values[0]}: its own pods may wait for the webhook"
        yield warning("NamespaceNotExempt", f"namespace {facts.namespace}", said, APPLY)


def _named(entries: list[Json]) -> dict[str, Json]:
    return {text(entry.get("name")): entry for entry in entries}


def _bare(entry: Json) -> Json:
    """Return the entry without the address and authority that the webhook fills in."""
    return {key: value for key, value in entry.items() if key != "clientConfig"} | {"path": path_of(entry)}


def _asks(entry: Json) -> list[Mapping[str, list[str]]]:
    """Return the rules of an entry in comparable form."""
    keys = ("apiGroups", "apiVersions", "resources", "operations")
    return [{key: sorted(rule.get(key) or ()) for key in keys} for rule in mappings(entry.get("rules"))]
