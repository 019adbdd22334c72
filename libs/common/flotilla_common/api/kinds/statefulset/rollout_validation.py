"""Validation of a StatefulSet's update strategy and of its limits (statefulset.md §3.2)."""

from collections.abc import Iterator

from flotilla_common.api.admission.fields import NON_NEGATIVE, Fault, invalid, required
from flotilla_common.api.admission.workload import is_percent, priority_problem, share_problem
from flotilla_common.api.documents import Json, mapping, mappings, member
from flotilla_common.api.keys import IN_PLACE_READY
from flotilla_common.api.meta import IntOrString
from flotilla_common.api.numbers import strict_value
from flotilla_common.api.rollout import POLICIES

MAX_MIN_READY_SECONDS = 300

_STRATEGY = "spec.updateStrategy"
_ROLLING = f"{_STRATEGY}.rollingUpdate"
_PARALLEL_ONLY = "can only work with Parallel PodManagementPolicyType"


def rollout_faults(spec: Json, *, parallel: bool) -> Iterator[Fault]:
    """The faults of spec.updateStrategy."""
    strategy = member(spec, "updateStrategy")
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type"):
        case None | "":
            yield required(_STRATEGY)
        case "OnDelete":
            if rolling is not None:
                yield invalid(_ROLLING, rolling, "only allowed for updateStrategy 'RollingUpdate'")
        case "RollingUpdate":
            if rolling is not None:
                yield from _rolling_faults(mapping(rolling), parallel=parallel)
                yield from _policy_faults(spec, mapping(rolling))
        case _:
            yield invalid(_STRATEGY, strategy, "must be 'RollingUpdate' or 'OnDelete'")


def limit_faults(path: str, limit: IntOrString, *, parallel: bool) -> Iterator[Fault]:
    """The faults of a number of pods that may be unavailable."""
    if problem := share_problem(limit):
        yield invalid(path, limit, problem)
    if (isinstance(limit, int) or is_percent(limit)) and strict_value(limit, 1, round_up=True) < 1:
        yield invalid(path, limit, "should not be less than 1")
    if not parallel and limit != 1:
        yield invalid(path, limit, _PARALLEL_ONLY)


def _rolling_faults(rolling: Json, *, parallel: bool) -> Iterator[Fault]:
    for name in ("partition", "minReadySeconds"):
        value = rolling.get(name) or 0
        if value < 0:
            yield invalid(f"{_ROLLING}.{name}", value, NON_NEGATIVE)
    seconds = rolling.get("minReadySeconds") or 0
    if seconds > MAX_MIN_READY_SECONDS:
        yield invalid(f"{_ROLLING}.minReadySeconds", seconds, f"must be no more than {MAX_MIN_READY_SECONDS} seconds")
    limit = rolling.get("maxUnavailable")
    if limit is None:
        yield required(f"{_ROLLING}.maxUnavailable")
    else:
        yield from limit_faults(f"{_ROLLING}.maxUnavailable", limit, parallel=parallel)
    if rolling.get("unorderedUpdate") is not None:
        yield from _order_faults(member(rolling, "unorderedUpdate"), parallel=parallel)


def _order_faults(unordered: Json, *, parallel: bool) -> Iterator[Fault]:
    path = f"{_ROLLING}.unorderedUpdate"
    if not parallel:
        yield required(path, f"unorderedUpdate {_PARALLEL_ONLY}")
    if problem := priority_problem(member(unordered, "priorityStrategy")):
        yield required(f"{path}.priorityStrategy", problem)


def _policy_faults(spec: Json, rolling: Json) -> Iterator[Fault]:
    path, policy = f"{_ROLLING}.podUpdatePolicy", rolling.get("podUpdatePolicy")
    if not policy:
        yield required(path)
        return
    if policy not in POLICIES:
        yield invalid(path, policy, f"must be one of {', '.join(POLICIES)}")
    gates = member(spec, "template", "spec").get("readinessGates")
    ready = any(gate.get("conditionType") == IN_PLACE_READY for gate in mappings(gates))
    if policy in ("InPlaceIfPossible", "InPlaceOnly") and not ready:
        detail = f"must contains {IN_PLACE_READY} when podUpdatePolicy is {policy}"
        yield invalid("spec.template.spec.readinessGates", gates, detail)
