"""Decides whether the selectors of two budgets overlap loosely (podunavailablebudget.md §4, "Loose overlap").

Selectors that require different labels count as different, even if a pod could match both.
"""

from flotilla_common.api.meta import LabelSelector, LabelSelectorRequirement

_WITH = {
    "Exists": {"In", "NotIn", "Exists"},
    "NotIn": {"Exists", "DoesNotExist", "NotIn"},
    "DoesNotExist": {"DoesNotExist", "NotIn"},
}
"""The operators that each operator is compatible with, for any values."""


def loosely_overlap(one: LabelSelector, other: LabelSelector) -> bool:
    """Report whether both selectors require the same labels, and a value can satisfy both for each label."""
    terms, others = _by_key(one), _by_key(other)
    return terms.keys() == others.keys() and all(_compatible(term, others[key]) for key, term in terms.items())


def _by_key(selector: LabelSelector) -> dict[str, LabelSelectorRequirement]:
    """Return one requirement for each key: the pair of matchLabels if there is one, else the last expression."""
    pairs = selector.match_labels.items()
    equal = {key: LabelSelectorRequirement(key=key, operator="In", values=[value]) for key, value in pairs}
    return {one.key: one for one in selector.match_expressions} | equal


def _compatible(one: LabelSelectorRequirement, other: LabelSelectorRequirement) -> bool:
    """Report whether some value satisfies both requirements; their order does not matter."""
    match one.operator, other.operator:
        case "In", "In":
            return not set(one.values).isdisjoint(other.values)
        case "In", "Exists":
            return True
        case "In", "NotIn":
            return not set(one.values) <= set(other.values)
        case "NotIn", "In":
            return not set(other.values) <= set(one.values)
        case first, second:
            return second in _WITH.get(first, ())
