"""Rules that select the pods for the pod webhook, and the webhook entries made from them (ADR 15, ADR 17).

A rule covers the pods of one object or feature. The entries combine all rules: one entry for rules that depend on the
pod and its namespace's name only, and one for each selector over labels of namespaces. So a pod that no rule matches
costs no call.

Conditions are in CEL, evaluated by the apiserver before it calls a webhook. Reading an absent member is an error that
would refuse the request: so each expression checks with has() or `in` first.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256

import msgspec

from flotilla_common.api.documents import Json, mapping, mappings
from flotilla_common.api.keys import CONTAINER_PRIORITY_ENV, LAUNCH_PRIORITY, LAUNCHED_IN_ORDER
from flotilla_common.api.meta import LabelSelector, LabelSelectorRequirement
from flotilla_common.api.webhooks import NOT_KUBE_SYSTEM, NOT_OURS, POD_ENTRY, POD_PATH, entry_of, rule_of

RULES = "kruise.io/pod-rules"
"""The annotation of the webhook configuration that holds its rules, as JSON."""

CHECK_PATH = "/validate-pod"
POD_CHECK_ENTRY, EVICTION_ENTRY = "vpod.kb.io", "vpodeviction.kb.io"

_PROBE = "flotilla-pod-rule-"
"""The name prefix of objects that are created in a dry run to find out which rules are in use."""

_LABELS = "(has(object.metadata.labels) ? object.metadata.labels : {})"


def quoted(value: str) -> str:
    """Return a CEL string literal, which is written as in JSON."""
    return msgspec.json.encode(value).decode()


def one_of(values: Iterable[str]) -> str:
    """Return a CEL list of strings."""
    return f"[{', '.join(map(quoted, values))}]"


def controlled_by(kinds: Iterable[tuple[str, str]], names: Mapping[tuple[str, str], str] | None = None) -> str:
    """Return the condition that the controller is of one of these groups and kinds, with its name in `names`."""
    these = " || ".join(_is_of(group, kind, (names or {}).get((group, kind), "")) for group, kind in kinds)
    owners = "object.metadata.ownerReferences"
    return f"has({owners}) && {owners}.exists(r, has(r.controller) && r.controller && ({these}))"


def _is_of(group: str, kind: str, name: str) -> str:
    in_group = f"r.apiVersion.startsWith({quoted(group + '/')})" if group else "!r.apiVersion.contains('/')"
    named = f" && r.name == {quoted(name)}" if name else ""
    return f"(r.kind == {quoted(kind)} && {in_group}{named})"


def labels_match(selector: LabelSelector) -> str:
    """Return the condition that the object's labels match the selector. An empty one matches all."""
    terms = [
        f"{_present(key)} && {_value(key)} == {quoted(value)}" for key, value in sorted(selector.match_labels.items())
    ]
    terms += [_requirement(requirement) for requirement in selector.match_expressions]
    return " && ".join(terms) or "true"


def _requirement(requirement: LabelSelectorRequirement) -> str:
    present = _present(requirement.key)
    match requirement.operator:
        case "In":
            return f"{present} && {_value(requirement.key)} in {one_of(requirement.values)}"
        case "NotIn":
            return f"!({present} && {_value(requirement.key)} in {one_of(requirement.values)})"
        case "Exists":
            return present
        case _:
            return f"!({present})"


def _present(key: str) -> str:
    return f"{quoted(key)} in {_LABELS}"


def _value(key: str) -> str:
    return f"object.metadata.labels[{quoted(key)}]"


class PodRule(msgspec.Struct, frozen=True, order=True, omit_defaults=True, rename="camel"):
    """A rule that selects the pods for one step of the pod webhook, or for one check."""

    why: str  # the object or feature, for people: "SidecarSet log"
    expression: str  # CEL over `object`; of checks over `oldObject`, for updates over both
    namespace: str = ""  # empty: all but the system's own
    namespace_labels: str = ""  # a selector over the labels of namespaces, as JSON
    probed: bool = True  # clients wait until the apiserver uses it
    updates: bool = False  # of a check: it selects updates of pods, not deletions

    @property
    def probe(self) -> str:
        """Return the name of an object that matches exactly while this rule is in use."""
        return f"{_PROBE}{sha256(msgspec.json.encode(self)).hexdigest()[:16]}"


LACKS_READINESS_GATE = PodRule(
    "KruisePodReadinessGate",
    "!has(object.spec.readinessGates) || !object.spec.readinessGates.exists(g, g.conditionType == 'KruisePodReady')",
    probed=False,
)
"""Selects pods that do not have the gate yet."""

LAUNCHES_IN_ORDER = PodRule(
    "container launch priority",
    "size(object.spec.containers) > 1 && ("
    "has(object.metadata.annotations)"
    f" && '{LAUNCH_PRIORITY}' in object.metadata.annotations"
    f" && object.metadata.annotations['{LAUNCH_PRIORITY}'] == '{LAUNCHED_IN_ORDER}'"
    f" || object.spec.containers.exists(c, has(c.env) && c.env.exists(e, e.name == '{CONTAINER_PRIORITY_ENV}')))",
    probed=False,
)
"""Selects pods that ask for it themselves, so the rule is always in use."""


def is_probe(name: str) -> bool:
    """Report whether the name is that of a probe, which is never stored."""
    return name.startswith(_PROBE)


def encoded(rules: Collection[PodRule]) -> str:
    """Encode the rules for the annotation."""
    return msgspec.json.encode(sorted(rules)).decode()


def decoded(value: str) -> frozenset[PodRule]:
    """Decode the rules from the annotation; empty if unreadable, as it is rewritten then."""
    try:
        return frozenset(msgspec.json.decode(value, type=list[PodRule])) if value else frozenset()
    except msgspec.MsgspecError:
        return frozenset()


def pod_entries(rules: Collection[PodRule]) -> list[Json]:
    """Return the webhook entries of these rules, without caBundle; empty without rules.

    The first one also matches the probes of all rules: the apiserver activates all entries at once.
    """
    if not rules:
        return []
    plain = [rule for rule in rules if not rule.namespace_labels]
    near = _any_of(plain)
    entries = [_first(near, rules)]
    for labels in sorted({rule.namespace_labels for rule in rules} - {""}):
        there = _any_of([rule for rule in rules if rule.namespace_labels == labels])
        entries.append(_selecting(labels, f"({there}) && !({near})" if near else there))
    return entries


def check_entries(rules: Collection[PodRule]) -> list[Json]:
    """Return the webhook entries for deletions and updates of matching pods, without caBundle; empty without rules.

    An eviction does not show its pod, so its entry matches whole namespaces.
    """
    going, updated = [rule for rule in rules if not rule.updates], [rule for rule in rules if rule.updates]
    found: list[Json] = []
    if rules:
        operations = [*(("UPDATE",) if updated else ()), *(("DELETE",) if going else ())]
        condition = _any_of(going) or "false"
        if updated:
            condition = f"request.operation == 'UPDATE' ? ({_any_of(updated)}) : ({condition})"
        asked, condition = _with_probes([rule_of("", ("v1",), "pods", *operations)], condition, rules)
        found.append(_check(POD_CHECK_ENTRY, asked, condition))
    if going:
        evicted = _any_of([PodRule(rule.why, "true", rule.namespace) for rule in going])
        found.append(_check(EVICTION_ENTRY, [rule_of("", ("v1",), "pods/eviction", "CREATE")], evicted))
    return found


def _check(name: str, asked: list[Json], condition: str) -> Json:
    return entry_of(name, CHECK_PATH, *asked) | {
        "sideEffects": "NoneOnDryRun",
        "namespaceSelector": {"matchExpressions": [NOT_OURS, NOT_KUBE_SYSTEM]},
        "matchConditions": [{"name": "seen-by-some-check", "expression": condition}],
    }


def _first(condition: str, rules: Collection[PodRule]) -> Json:
    asked = [rule_of("", ("v1",), "pods", "CREATE")] if condition else []
    return _entry(POD_ENTRY, *_with_probes(asked, condition, rules), [])


def _with_probes(asked: list[Json], condition: str, rules: Collection[PodRule]) -> tuple[list[Json], str]:
    """Return the rules and the condition of an entry, extended to match the probes of the given rules."""
    probes = sorted(rule.probe for rule in rules if rule.probed)
    if not probes:
        return asked, condition
    probe = f"has(object.metadata.name) && object.metadata.name in {one_of(probes)}"
    condition = f"request.resource.resource == 'podtemplates' ? {probe} : ({condition or 'false'})"
    return [*asked, rule_of("", ("v1",), "podtemplates", "CREATE")], condition


def _selecting(labels: str, condition: str) -> Json:
    """Return the entry of a namespace selector, excluding pods that the first entry already matches."""
    name, _, domain = POD_ENTRY.partition(".")
    asked = [rule_of("", ("v1",), "pods", "CREATE")]
    unique = f"{name}-{sha256(labels.encode()).hexdigest()[:8]}.{domain}"
    return _entry(unique, asked, condition, list(_expressions(msgspec.json.decode(labels))))


def _entry(name: str, asked: list[Json], condition: str, namespaces: list[Json]) -> Json:
    return entry_of(name, POD_PATH, *asked) | {
        "namespaceSelector": {"matchExpressions": [NOT_OURS, NOT_KUBE_SYSTEM, *namespaces]},
        "matchConditions": [{"name": "seen-by-some-step", "expression": condition}],
    }


def _expressions(selector: Json) -> Iterator[Json]:
    for key, value in sorted(mapping(selector.get("matchLabels")).items()):
        yield {"key": key, "operator": "In", "values": [value]}
    yield from mappings(selector.get("matchExpressions"))


def _any_of(rules: Iterable[PodRule]) -> str:
    """Return the condition that any of the rules matches; empty without rules."""
    places: dict[str, set[str]] = {}
    for rule in rules:
        places.setdefault(rule.expression, set()).add(rule.namespace)
    return " || ".join(_within(expression, names) for expression, names in sorted(places.items()))


def _within(expression: str, namespaces: set[str]) -> str:
    if "" in namespaces:
        return f"({expression})"
    one = namespaces if len(namespaces) > 1 else None
    place = f"in {one_of(sorted(one))}" if one else f"== {quoted(next(iter(namespaces)))}"
    return f"(request.namespace {place} && ({expression}))"
