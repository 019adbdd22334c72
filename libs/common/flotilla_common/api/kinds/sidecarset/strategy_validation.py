"""Validation of the selectors and of both strategies of a SidecarSet (sidecarset.md §4.1)."""

import re
from collections.abc import Iterator

from flotilla_common.api.admission.fields import NON_NEGATIVE, Fault, invalid, required
from flotilla_common.api.admission.workload import priority_problem, scatter_problem
from flotilla_common.api.documents import Json, mapping, mappings, member, typed
from flotilla_common.api.kinds.sidecarset.types import PARTIAL
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.selectors import Selector

ROLLING_UPDATE = "RollingUpdate"

_STRATEGY = "spec.updateStrategy"
_PERCENT = re.compile(r"[0-9]{1,18}%")


def selector_faults(spec: Json) -> Iterator[Fault]:
    """The faults of spec.selector and spec.namespaceSelector."""
    if spec.get("selector") is None:
        yield required("spec.selector", "no selector defined")
    yield from _selector_faults("spec.selector", spec.get("selector"))
    yield from _selector_faults("spec.namespaceSelector", spec.get("namespaceSelector"))


def update_faults(spec: Json) -> Iterator[Fault]:
    """The faults of spec.updateStrategy. Only a rolling update is judged: another type looks at none of it."""
    strategy = member(spec, "updateStrategy")
    if strategy.get("type") != ROLLING_UPDATE:
        return
    for container in mappings(spec.get("initContainers")):
        if container.get("restartPolicy") == "Always":
            detail = "in-place upgrade of init containers is not supported: set type NotUpdate"
            yield required(_STRATEGY, f"init container {container.get('name')}: {detail}")
    selector, partition = strategy.get("selector"), strategy.get("partition")
    yield from _selector_faults(f"{_STRATEGY}.selector", selector)
    if selector is not None and partition not in (None, 0):
        yield invalid("updateStrategy", strategy, "selector and partition cannot be used together")
    for name in ("partition", "maxUnavailable"):
        yield from _number_faults(f"{_STRATEGY}.{name}", strategy.get(name))
    if problem := priority_problem(member(strategy, "priorityStrategy")):
        yield required(f"{_STRATEGY}.priorityStrategy", problem)
    if problem := scatter_problem(mappings(strategy.get("scatterStrategy"))):
        yield required(f"{_STRATEGY}.scatterStrategy", problem)


def injection_faults(spec: Json, *, missing: bool) -> Iterator[Fault]:
    """The faults of spec.injectionStrategy. `missing`: the revision that it names cannot be found."""
    revision = member(spec, "injectionStrategy").get("revision")
    if revision is None:
        return
    choice = mapping(revision)
    if choice.get("revisionName") is None and choice.get("customVersion") is None:
        yield invalid("revision", choice, "revisionName and customVersion cannot be empty at the same time")
    elif missing:
        yield invalid("revision", choice, "cannot find specific ControllerRevision")
    if choice.get("policy") not in (None, "", "Always", PARTIAL):
        yield invalid("revision.policy", choice["policy"], f"must be Always or {PARTIAL}")


def _selector_faults(path: str, given: object) -> Iterator[Fault]:
    if given is None:
        return
    selector = typed(given, LabelSelector)
    if not selector.match_labels and not selector.match_expressions:
        yield invalid(path, mapping(given), "empty selector is not valid for sidecarset.")
    try:
        Selector.compile(selector)
    except ValueError as problem:
        yield invalid(path, mapping(given), str(problem))
        yield invalid(f"{path}.selector", mapping(given), str(problem))


def _number_faults(path: str, value: object) -> Iterator[Fault]:
    if isinstance(value, str) and not _PERCENT.fullmatch(value):
        yield invalid(path, value, "a valid percent string must be a numeric string followed by an ending '%'")
    if isinstance(value, int) and value < 0:
        yield invalid(path, value, NON_NEGATIVE)
