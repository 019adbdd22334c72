"""Keeps the rules of the pod webhook bounded, however many objects need them (ADR 15).

An annotation holds 256 KiB, the apiserver accepts no expression of more than 100,000 characters, and each new rule
costs a write of the configuration. So rules for the same pods in more than a few dozen namespaces are replaced by one
rule for all namespaces; if even that is too much, by a rule for every pod. The steps of the webhook skip pods that do
not concern them: a wider rule costs calls, and changes no outcome.
"""

from collections.abc import Collection, Iterable

import msgspec

from flotilla_common.api.documents import Json, mappings
from flotilla_common.api.podrules import PodRule, encoded, pod_entries

NAMESPACES_AT_MOST = 64
"""The most namespaces with rules of their own for the same pods."""

_ANNOTATION_AT_MOST = 128 << 10
_ENTRIES_AT_MOST = 512 << 10  # of the 1.5 MiB of an object
_CONDITION_AT_MOST = 90_000

_WIDE = "objects for many namespaces"
EVERY_POD = PodRule("more objects than can be told apart", "true")
EVERY_UPDATE = PodRule(EVERY_POD.why, "true", updates=True)
"""Used, as EVERY_POD, if there are too many different rules."""


def everywhere(rule: PodRule) -> PodRule:
    """Return the rule for the same pods in all namespaces."""
    return PodRule(_WIDE, rule.expression, updates=rule.updates)


def bounded(rules: Collection[PodRule]) -> frozenset[PodRule]:
    """Return rules that match at least these pods, and fit into the configuration."""
    distinct = _widened(rules)
    if EVERY_POD not in distinct:
        for found in (distinct, _spread(distinct)):
            if _fits(found):
                return found
    updates = {EVERY_UPDATE} if any(rule.updates for rule in distinct) else set[PodRule]()
    return frozenset({EVERY_POD, *updates, *(rule for rule in distinct if not rule.probed)})


def standing_for(rule: PodRule, stands: Collection[PodRule]) -> PodRule:
    """Return the rule in use that covers the given rule, else the rule itself."""
    widest = EVERY_UPDATE if rule.updates else EVERY_POD
    return next((one for one in (rule, everywhere(rule), widest) if one in stands), rule)


def _widened(rules: Iterable[PodRule]) -> frozenset[PodRule]:
    """Return the rules, with those for the same pods in too many namespaces replaced by one for all of them."""
    places: dict[str, set[str]] = {}
    for rule in rules:
        if rule.namespace:
            places.setdefault(rule.expression, set()).add(rule.namespace)
    wide = {everywhere(rule) for rule in rules if len(places.get(rule.expression, ())) > NAMESPACES_AT_MOST}
    wide |= {rule for rule in rules if rule.why == _WIDE}
    meant = {rule.expression for rule in wide}
    return frozenset(rule for rule in rules if not (rule.namespace and rule.expression in meant)) | wide


def _spread(rules: Iterable[PodRule]) -> frozenset[PodRule]:
    """Return the rules without restrictions to namespaces."""
    return frozenset(everywhere(rule) if rule.namespace or rule.namespace_labels else rule for rule in rules)


def _fits(rules: Collection[PodRule]) -> bool:
    if len(encoded(rules)) > _ANNOTATION_AT_MOST:
        return False
    entries = pod_entries(rules)
    return len(msgspec.json.encode(entries)) <= _ENTRIES_AT_MOST and all(
        len(condition["expression"]) <= _CONDITION_AT_MOST for entry in entries for condition in _conditions(entry)
    )


def _conditions(entry: Json) -> list[Json]:
    return mappings(entry["matchConditions"])
