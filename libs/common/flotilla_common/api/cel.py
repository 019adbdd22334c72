"""Conditions in CEL, as the apiserver evaluates them on an object before it calls a webhook.

Members of an object may be absent, and reading an absent one is an error that would refuse the request: so each
expression looks first.
"""

from collections.abc import Iterable

import msgspec

from flotilla_common.api.meta import LabelSelector, LabelSelectorRequirement

_LABELS = "(has(object.metadata.labels) ? object.metadata.labels : {})"


def quoted(value: str) -> str:
    """A string; they are written as those of JSON."""
    return msgspec.json.encode(value).decode()


def one_of(values: Iterable[str]) -> str:
    """A list of strings."""
    return f"[{', '.join(map(quoted, values))}]"


def labels_match(selector: LabelSelector) -> str:
    """The object's labels match the selector. An empty one matches all of them."""
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
