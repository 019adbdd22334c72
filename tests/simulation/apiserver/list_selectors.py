"""Label and field selectors of a LIST."""

import re
from collections.abc import Callable, Collection

from flotilla_common.api.meta import LabelSelectorRequirement
from flotilla_common.api.selectors import Selector, key_problem
from flotilla_common.control.plan import Json
from tests.simulation.apiserver.errors import bad_request
from tests.simulation.apiserver.kinds.custom import at_path

Test = Callable[[Json], bool]

_TERMS = re.compile(r",(?![^(]*\))")
_SET = re.compile(r"\s*(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)\s*")


def label_test(text: str) -> Test:
    """Return a test whether a document's labels match the selector."""
    requirements = tuple(_requirement(term.strip()) for term in _TERMS.split(text) if term.strip())
    selector = Selector({}, requirements)
    return lambda document: selector.matches(document["metadata"].get("labels") or {})


def _requirement(term: str) -> LabelSelectorRequirement:
    requirement = _parsed(term)
    if key_problem(requirement.key):
        raise bad_request(f"unable to parse requirement: {term}")
    return requirement


def _parsed(term: str) -> LabelSelectorRequirement:
    if match := _SET.fullmatch(term):
        values = [value.strip() for value in match["values"].split(",")]
        return LabelSelectorRequirement(
            key=match["key"], operator="In" if match["operator"] == "in" else "NotIn", values=values
        )
    if "!=" in term:
        key, _, value = term.partition("!=")
        return LabelSelectorRequirement(key=key.strip(), operator="NotIn", values=[value.strip()])
    if "=" in term:
        key, _, value = term.partition("=")
        return LabelSelectorRequirement(key=key.strip(), operator="In", values=[value.lstrip("=").strip()])
    if term.startswith("!"):
        return LabelSelectorRequirement(key=term[1:].strip(), operator="DoesNotExist")
    return LabelSelectorRequirement(key=term, operator="Exists")


def field_test(text: str, known: Collection[str]) -> Test:
    """Return a test for a document's members: `a.b=c` and `a.b!=c`, joined by commas.

    Raises ApiError 400 for a field that is not `known`.
    """
    terms: list[tuple[str, str, bool]] = []
    for term in text.split(","):
        path, found, value = term.partition("=")
        if not found:
            raise bad_request(f"invalid field selector: {text}")
        label = path.rstrip("!")
        if label not in known:
            raise bad_request(f"field label not supported: {label}")
        terms.append((f".{label}", value.lstrip("="), path.endswith("!")))
    return lambda document: all((str(at_path(document, p) or "") == value) != differs for p, value, differs in terms)
