"""Validation rules that several workload kinds with a pod template share.

The apiserver validates object metadata and the pod template itself (docs/adr/0002): a kind asks it for a verdict, and
adds restrictions that all workloads have.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec

from flotilla_common.api.admission.fields import NON_NEGATIVE, Fault, forbidden, invalid, not_supported, required
from flotilla_common.api.admission.handlers import Tools, Verdict, Write
from flotilla_common.api.admission.review import operations
from flotilla_common.api.documents import Json, mapping, mappings, member, strings, text, typed
from flotilla_common.api.meta import IntOrString, LabelSelector
from flotilla_common.api.podtemplate import canonical_object
from flotilla_common.api.selectors import Selector, selector_problem

LONGEST_NAME = 52
"""The most characters of a name: the label controller-revision-hash adds a dash and 10 digits, and holds 63."""

LABEL_TOO_LONG = "the pods' label controller-revision-hash gets too long"

_MAX_WEIGHT = 100
_IMAGE = re.compile(r"/containers/\d+/image")
_PERCENT = re.compile(r"[0-9]{1,18}%")


def selector_faults(spec: Json, kind: str) -> Iterator[Fault]:
    """Yield faults unless the selector is valid, not empty, and matches the template's labels."""
    given = spec.get("selector")
    if given is None:
        yield required("spec.selector")
        return
    try:
        selector = Selector.compile(typed(given, LabelSelector))
    except ValueError as error:
        yield invalid("spec.selector", given, str(error))
        return
    if selector.empty:
        yield invalid("spec.selector", given, f"empty selector is invalid for {kind.lower()}")
        return
    labels = member(spec, "template", "metadata").get("labels")
    if not selector.matches(strings(labels)):
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def selector_of(spec: Json) -> LabelSelector:
    """Return the decoded selector, in any notation. Raises ValueError."""
    return typed(spec.get("selector") or {}, LabelSelector)


def endless_faults(spec: Json, kind: str) -> Iterator[Fault]:
    """Yield faults for pods that end by themselves, which a long-running workload must not have."""
    pod = member(spec, "template", "spec")
    restart = pod.get("restartPolicy")
    if restart not in (None, "", "Always"):
        yield not_supported("spec.template.spec.restartPolicy", restart, ["Always"])
    if pod.get("activeDeadlineSeconds") is not None:
        yield forbidden("spec.template.spec.activeDeadlineSeconds", f"a {kind}'s pods have no deadline")


async def template_verdict(tools: Tools, write: Write) -> Verdict:
    """Return the faults of the pod and claim templates. Raises ApiError and Unreachable.

    Only new or changed templates are checked: stored ones stay writable when the apiserver gets stricter.
    """
    if not template_changed(write.document, write.old):
        return Verdict()
    spec = mapping(write.document.get("spec"))
    claims = mappings(spec.get("volumeClaimTemplates"))
    verdict = await tools.template_verdict(write.namespace, mapping(spec.get("template")), claims)
    return Verdict([*verdict.faults, *claim_faults(claims)], verdict.dropped)


def unknown_fields(verdict: Verdict) -> list[str]:
    """Return the warnings about fields that pods will not have."""
    return [f'unknown field "{path}": pods will not have it' for path in verdict.dropped]


def template_changed(document: Json, old: Json | None) -> bool:
    """Report whether the pod template or a claim template is new."""
    new = mapping(document.get("spec"))
    before = mapping(old.get("spec")) if old else {}
    return old is None or any(new.get(key) != before.get(key) for key in ("template", "volumeClaimTemplates"))


def claim_faults(claims: Iterable[Json]) -> Iterator[Fault]:
    """Yield faults of claim templates that are unreadable or unnamed: no pod or revision could be made of them."""
    for index, claim in enumerate(claims):
        path = f"spec.volumeClaimTemplates[{index}]"
        try:
            canonical_object("PersistentVolumeClaimTemplate", msgspec.json.encode(claim))
        except ValueError as error:
            yield Fault(path, f"Invalid value: {error}")
        if not member(claim, "metadata").get("name"):
            yield required(f"{path}.metadata.name", "it is the name of the pods' volume")


def change_beyond_images(spec: Json, old: Json) -> str:
    """Return the first change of the pods' spec beyond container images, as `<op> <path>`; empty if none."""
    for change in operations(member(old, "template", "spec"), member(spec, "template", "spec")):
        if change.op != "replace" or not _IMAGE.fullmatch(change.path):
            return f"{change.op} {change.path}"
    return ""


def is_percent(value: IntOrString) -> bool:
    """Report whether the value is a whole number of percents, as text."""
    return isinstance(value, str) and _PERCENT.fullmatch(value) is not None


def share_problem(value: IntOrString) -> str:
    """Return why the value is neither a number of pods or nodes nor a percentage; empty if it is."""
    if isinstance(value, int):
        return NON_NEGATIVE if value < 0 else ""
    return "" if is_percent(value) else "a valid percent string must be a numeric string followed by an ending '%'"


def order_faults(path: str, strategy: Json) -> Iterator[Fault]:
    """Yield the faults of the update order's settings."""
    if problem := priority_problem(member(strategy, "priorityStrategy")):
        yield required(f"{path}.priorityStrategy", problem)
    if problem := _scatter_problem(mappings(strategy.get("scatterStrategy"))):
        yield required(f"{path}.scatterStrategy", problem)


def priority_problem(strategy: Json) -> str:
    """Return why a priorityStrategy cannot be used; empty if it can (common.md §11.1)."""
    weights, orders = mappings(strategy.get("weightPriority")), mappings(strategy.get("orderPriority"))
    if weights and orders:
        return "only one of weightPriority and orderPriority can be used"
    for term in weights:
        weight = term.get("weight", 0)
        if not 0 <= weight <= _MAX_WEIGHT:
            return f"weight must be valid number in the [0, 100], got {weight}"
        if reason := _selector_problem(mapping(term.get("matchSelector"))):
            return reason
    if any(not term.get("orderedKey") for term in orders):
        return "order key can not be empty"
    return ""


def _scatter_problem(terms: list[Json]) -> str:
    """Return why a scatterStrategy cannot be used; empty if it can (common.md §11.2)."""
    seen: set[tuple[str, str]] = set()
    for term in terms:
        pair = text(term.get("key")), text(term.get("value"))
        if not pair[0]:
            return "key can not be empty"
        if pair in seen:
            return f"duplicated key={pair[0]} value={pair[1]}"
        seen.add(pair)
    return ""


def too_long(name: str, limit: int, consequence: str) -> list[str]:
    """Return the warning about a name that exceeds the limit; empty if it fits."""
    if len(name) <= limit:
        return []
    begin = f"metadata.name has {len(name)} characters: with more than {limit}"
    return [f"{begin} {consequence}, and they cannot be created"]


def _selector_problem(selector: Json) -> str:
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        return "selector can not be empty"
    problem = selector_problem(typed(selector, LabelSelector))
    return f"invalid selector {problem}" if problem else ""
