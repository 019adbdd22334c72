"""Label selectors: validation, matching, and the canonical string that Kubernetes prints (cloneset.md §5.1).

A selector is compiled once per version of its object and then matched against each pod. Nearly every selector has
equality terms only, so these are kept apart and tested as a subset of the labels' items.
"""

import re
from collections.abc import ItemsView, Mapping, Set

from flotilla_common.api.meta import LabelSelector, LabelSelectorRequirement

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_PREFIX_LIMIT = 253  # a DNS subdomain


_WRITTEN = re.compile(
    r"\s*(?P<absent>!?)\s*(?P<key>[^\s,=!()]+)\s*"
    r"(?:(?P<set>in|notin)\s*\((?P<values>[^()]*)\)|(?P<sign>==?|!=)\s*(?P<value>[^\s,=!()]*))?\s*"
)


def key_problem(key: str) -> str:
    """Return why the text is not a label key; empty if it is one."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= _PREFIX_LIMIT and _PREFIX.fullmatch(prefix)):
        return f"prefix part of {key!r} must be a lower case DNS subdomain"
    if not _NAME.fullmatch(name):
        return (
            f"name part of {key!r} must be at most 63 alphanumeric characters, '-', '_' or '.', "
            "and start and end with an alphanumeric character"
        )
    return ""


def value_problem(value: str) -> str:
    """Return why the text is not a label value; empty if it is one."""
    if not value or _NAME.fullmatch(value):
        return ""
    return (
        f"label value {value!r} must be empty or at most 63 alphanumeric characters, '-', '_' or '.', "
        "and start and end with an alphanumeric character"
    )


class Selector:
    """A compiled label query. Without requirements it matches everything."""

    __slots__ = ("_equal", "_requirements", "_terms", "_text")

    def __init__(self, equal: Mapping[str, str], requirements: tuple[LabelSelectorRequirement, ...]) -> None:
        self._equal: ItemsView[str, str] = dict(equal).items()
        self._requirements = requirements
        self._terms = [(one.key, one.operator, frozenset(one.values)) for one in requirements]
        self._text = _canonical(equal, requirements)

    @classmethod
    def compile(cls, selector: LabelSelector) -> "Selector":
        """Compile the selector. Raises ValueError with field and reason for an invalid key, value or operator."""
        for key, value in selector.match_labels.items():
            _check(f"matchLabels[{key}]", key_problem(key) or value_problem(value))
        for index, requirement in enumerate(selector.match_expressions):
            _check_requirement(f"matchExpressions[{index}]", requirement)
        return cls(selector.match_labels, tuple(selector.match_expressions))

    @classmethod
    def of_workload(cls, selector: LabelSelector) -> "Selector":
        """Compile the spec.selector of a workload. Raises ValueError with its path if it is invalid or empty."""
        try:
            compiled = cls.compile(selector)
        except ValueError as error:
            raise ValueError(f"spec.selector: {error}") from error
        if compiled.empty:
            raise ValueError("spec.selector is empty")
        return compiled

    @classmethod
    def read(cls, written: str) -> "Selector":
        """Parse a one-line selector, such as those of scale subresources. Raises ValueError."""
        requirements: list[LabelSelectorRequirement] = []
        rest = written.strip()
        while rest:
            found = _WRITTEN.match(rest)
            if found is None or rest[found.end() : found.end() + 1] not in ("", ","):
                raise ValueError(f"{written!r} is not a label selector")
            requirements.append(_read_requirement(found))
            rest = rest[found.end() + 1 :]
        return cls.compile(LabelSelector(match_expressions=requirements))

    @property
    def empty(self) -> bool:
        """Report whether there are no requirements."""
        return not self._equal and not self._requirements

    @property
    def parts(self) -> list["Selector"]:
        """Return each requirement as a selector of its own."""
        equal = [Selector(dict((item,)), ()) for item in self._equal]
        return equal + [Selector({}, (requirement,)) for requirement in self._requirements]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Report whether all requirements hold."""
        if not self._equal <= labels.items():
            return False
        return not self._terms or all(
            _holds(operator, labels.get(key), values) for key, operator, values in self._terms
        )

    def __str__(self) -> str:
        return self._text


def _read_requirement(found: re.Match[str]) -> LabelSelectorRequirement:
    key, sign, values = found["key"], found["set"] or found["sign"], found["values"]
    if not sign:
        return LabelSelectorRequirement(key=key, operator="DoesNotExist" if found["absent"] else "Exists")
    operator = "NotIn" if sign in ("notin", "!=") else "In"
    given = [found["value"]] if values is None else [value.strip() for value in values.split(",")]
    return LabelSelectorRequirement(key=key, operator=operator, values=given)


def _holds(operator: str, value: str | None, values: Set[str]) -> bool:
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None


def _check_requirement(field: str, requirement: LabelSelectorRequirement) -> None:
    _check(f"{field}.key", key_problem(requirement.key))
    if requirement.operator not in _OPERATORS:
        _check(f"{field}.operator", f"{requirement.operator!r} is not a valid label selector operator")
    needs_values = requirement.operator in ("In", "NotIn")
    if needs_values and not requirement.values:
        _check(f"{field}.values", f"must be specified when `operator` is {requirement.operator}")
    if not needs_values and requirement.values:
        _check(f"{field}.values", f"may not be specified when `operator` is {requirement.operator}")
    for index, value in enumerate(requirement.values):
        _check(f"{field}.values[{index}]", value_problem(value))


def _check(field: str, problem: str) -> None:
    if problem:
        raise ValueError(f"{field}: {problem}")


def _canonical(equal: Mapping[str, str], requirements: tuple[LabelSelectorRequirement, ...]) -> str:
    """Return all requirements sorted by key, with sorted values; per key, equality first and the rest as given."""
    parts = [(key, f"{key}={value}") for key, value in equal.items()]
    parts += [(requirement.key, _requirement_text(requirement)) for requirement in requirements]
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0]))


def _requirement_text(requirement: LabelSelectorRequirement) -> str:
    values = ",".join(sorted(requirement.values))
    match requirement.operator:
        case "In":
            return f"{requirement.key} in ({values})"
        case "NotIn":
            return f"{requirement.key} notin ({values})"
        case "Exists":
            return requirement.key
        case _:
            return f"!{requirement.key}"


def selector_problem(selector: LabelSelector) -> str:
    """Return why the selector cannot be used; empty if it can."""
    try:
        Selector.compile(selector)
    except ValueError as problem:
        return str(problem)
    return ""
