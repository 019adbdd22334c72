"""Validates the annotations that a SidecarSet puts on pods (sidecarset.md §4.1, §4.5).

Administrators allow them in the ConfigMap `kruise-configuration` of the system's namespace, which is read for each
decision.
"""

from collections.abc import Iterator, Mapping

from flotilla_common.api import re2
from flotilla_common.api.admission.fields import Fault, invalid, required
from flotilla_common.api.documents import Json, mappings, member, strings
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.meta import LabelSelector, Model
from flotilla_common.api.selectors import Selector, key_problem

WHITE_LIST = "SidecarSet_PatchPodMetadata_WhiteList"
"""The key in the ConfigMap."""

MAX_SIZE = 256 * 1024
"""The most bytes of all annotations of an object, as the apiserver counts them."""

_PATH = "spec.patchPodMetadata"


class _Rule(Model):
    selector: LabelSelector | None = None  # over the labels of SidecarSets; None: all of them
    allowed_annotation_key_exprs: list[str] = []


class _WhiteList(Model):
    rules: list[_Rule] = []


def metadata_faults(document: Json, configuration: Mapping[str, str], *, allowed: bool) -> Iterator[Fault]:
    """Yield the faults of spec.patchPodMetadata.

    `configuration` is the data of the ConfigMap; `allowed` applies if no rule matches this SidecarSet.
    """
    entries = [
        strings(entry.get("annotations")) for entry in mappings(member(document, "spec").get("patchPodMetadata"))
    ]
    if not entries:
        return
    labels = strings(member(document, "metadata").get("labels"))
    if problem := _white_list_problem(entries, labels, configuration.get(WHITE_LIST, ""), allowed=allowed):
        yield required(_PATH, problem)
    seen: set[str] = set()
    for annotations in entries:
        if not annotations:
            yield required(_PATH, "no annotations defined")
        if again := sorted(seen & annotations.keys()):
            yield required(_PATH, f"duplicated annotation keys: {', '.join(again)}")
        seen |= annotations.keys()
        if problem := _annotations_problem(annotations):
            yield invalid("patchPodMetadata.annotations", annotations, problem)


def _white_list_problem(entries: list[dict[str, str]], labels: dict[str, str], written: str, *, allowed: bool) -> str:
    try:
        expressions = _expressions(written, labels)
        searches = [re2.compiled(expression).search for expression in expressions]
    except ValueError as problem:
        return f"the white list {WHITE_LIST} cannot be read: {problem}"
    if not searches:
        return "" if allowed else "annotations are not in the white list, which has no rule for this SidecarSet"
    for key in (key for annotations in entries for key in annotations):
        if not any(search(key) for search in searches):
            return f"annotation {key} is not in the white list"
    return ""


def _expressions(written: str, labels: dict[str, str]) -> list[str]:
    """Return the expressions of all rules that match a SidecarSet with these labels. Raises ValueError."""
    rules = read_json(written, _WhiteList).rules if written else []
    compiled = [(rule, None if rule.selector is None else Selector.compile(rule.selector)) for rule in rules]
    about_it = [rule for rule, selector in compiled if selector is None or selector.matches(labels)]
    return [expression for rule in about_it for expression in rule.allowed_annotation_key_exprs]


def _annotations_problem(annotations: dict[str, str]) -> str:
    for key in annotations:
        if problem := key_problem(key.lower()):
            return problem
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    return f"annotations size {size} is larger than limit {MAX_SIZE}" if size > MAX_SIZE else ""
