"""Validation of a WorkloadSpread, as v1beta1 (workloadspread.md §4).

Other objects that the checks need are passed in.
"""

from collections.abc import Iterable, Iterator, Sequence

from flotilla_common.api.admission.fields import Fault, invalid, required
from flotilla_common.api.documents import Json, mapping, mappings, member, text, typed
from flotilla_common.api.kinds.workloadspread.targets import BUILT_IN, NUMBERED, CustomWorkload, GroupKind
from flotilla_common.api.kinds.workloadspread.types import ADAPTIVE, WorkloadSpread
from flotilla_common.api.meta import IntOrString, LabelSelector, TargetRef
from flotilla_common.api.numbers import integer
from flotilla_common.api.selectors import Selector

_TARGET, _SUBSETS = "spec.targetRef", "spec.subsets"
_STRATEGY = "spec.scheduleStrategy"
_MOST_SECONDS = 295
"""The longest time in which pods move through all subsets but the last: subsets stay marked for 300 seconds."""


def validate(
    document: Json, old: Json | None, custom: Iterable[CustomWorkload], others: Iterable[WorkloadSpread]
) -> list[Fault]:
    """Return all faults of a WorkloadSpread by itself.

    `custom`: the kinds that administrators list; `others`: WorkloadSpreads of the namespace under other names.
    """
    spec = mapping(document.get("spec"))
    target = _target(spec)
    faults = [*_target_faults(spec, target, custom), *_name_faults(spec)]
    if not faults:
        faults += _limit_faults(mappings(spec.get("subsets")), target)
    faults += [*_strategy_faults(spec), *_filter_faults(spec)]
    faults += [*_conflict_faults(spec, target, others)]
    if old is not None and target.identity != _target(mapping(old.get("spec"))).identity:
        faults.append(invalid(_TARGET, _shown(spec), "change TargetReference is not permitted for WorkloadSpread"))
    return faults


def _target(spec: Json) -> TargetRef:
    try:
        return typed(spec.get("targetRef") or {}, TargetRef)
    except ValueError:
        return TargetRef()


def _shown(spec: Json) -> Json:
    return member(spec, "targetRef")


def _target_faults(spec: Json, target: TargetRef, custom: Iterable[CustomWorkload]) -> Iterator[Fault]:
    if spec.get("targetRef") is None:
        yield required(_TARGET, "no target reference")
    elif not (target.api_version and target.kind and target.name):
        yield invalid(_TARGET, _shown(spec), "empty TargetReference is not valid for WorkloadSpread.")
    else:
        group, kind, _ = target.identity
        known = {(one.group, one.kind) for one in custom} | BUILT_IN.keys()
        if (group, kind) in known:
            return
        if any(kind == other for _, other in BUILT_IN):
            yield invalid(_TARGET, _shown(spec), f"TargetReference is not valid for {kind}.")
        else:
            yield invalid(_TARGET, _shown(spec), "TargetReference's GroupKind is not permitted.")


def _name_faults(spec: Json) -> Iterator[Fault]:
    subsets = mappings(spec.get("subsets"))
    if not subsets:
        yield required(_SUBSETS, "subsets number must greater than 1 in WorkloadSpread")
    seen: set[str] = set()
    for index, subset in enumerate(subsets):
        name = text(subset.get("name"))
        if not name:
            yield invalid(f"{_SUBSETS}[{index}].name", name, "must not be empty")
        elif name in seen:
            yield invalid(f"{_SUBSETS}[{index}].name", name, f"duplicated subset name {name}")
        seen.add(name)


def _limit_faults(subsets: Sequence[Json], target: TargetRef) -> list[Fault]:
    """Return the faults of the limits: of types, else of values, else of their sum."""
    limits = [(index, subset.get("maxReplicas")) for index, subset in enumerate(subsets)]
    given: list[tuple[int, IntOrString]] = [(index, limit) for index, limit in limits if limit is not None]
    kind: GroupKind = target.identity[:2]
    for check in (_type_faults, _value_faults):
        if faults := check(given, kind):
            return faults
    percents = [int(limit[:-1]) for _, limit in given if isinstance(limit, str)]
    if sum(percents) > 100:
        return [invalid(f"{_SUBSETS}[0].maxReplicas", sum(percents), "maxReplicas sum of all subsets must equal 100%")]
    if percents and sum(percents) < 100 and subsets[-1].get("maxReplicas") is not None:
        detail = "maxReplicas sum of all subsets must equal 100% when no subset without maxReplicas"
        return [invalid(f"{_SUBSETS}[0].maxReplicas", sum(percents), detail)]
    return []


def _type_faults(given: Sequence[tuple[int, IntOrString]], kind: GroupKind) -> list[Fault]:
    if kind in NUMBERED:
        detail = "maxReplicas must be Int for StatefulSet"
        return [_limit_fault(index, limit, detail) for index, limit in given if isinstance(limit, str)]
    if len({type(limit) for _, limit in given}) > 1:
        index, limit = given[-1]
        return [_limit_fault(index, limit, "the type of maxReplicas of all subsets must be the same")]
    return []


def _value_faults(given: Sequence[tuple[int, IntOrString]], kind: GroupKind) -> list[Fault]:
    detail = "must be a number that is not negative, or a whole percentage between 0% and 100%"
    return [_limit_fault(index, limit, detail) for index, limit in given if not _is_limit(limit)]


def _is_limit(limit: IntOrString) -> bool:
    if isinstance(limit, int):
        return limit >= 0
    percent = integer(limit[:-1]) if limit.endswith("%") else None
    return percent is not None and 0 <= percent <= 100


def _limit_fault(index: int, limit: IntOrString, detail: str) -> Fault:
    return invalid(f"{_SUBSETS}[{index}].maxReplicas", limit, detail)


def _strategy_faults(spec: Json) -> Iterator[Fault]:
    strategy, subsets = member(spec, "scheduleStrategy"), mappings(spec.get("subsets"))
    kind = strategy.get("type")
    if kind not in (None, "", ADAPTIVE, "Fixed"):
        yield invalid(f"{_STRATEGY}.type", kind, "ScheduleStrategy's type is not valid")
    if strategy.get("adaptive") is None:
        return
    if kind != ADAPTIVE:
        yield invalid(f"{_STRATEGY}.type", kind or "", "adaptive needs the type Adaptive")
    if len(subsets) > 1 and subsets[-1].get("maxReplicas") is not None:
        detail = "the last subset must not specify maxReplicas when using adaptive strategy"
        yield invalid(f"{_STRATEGY}.adaptive", subsets[-1].get("maxReplicas"), detail)
    seconds = member(strategy, "adaptive").get("rescheduleCriticalSeconds") or 0
    limit = _MOST_SECONDS // (len(subsets) - 1) if len(subsets) > 1 else None
    if seconds < 0 or (limit is not None and seconds > limit):
        detail = f"rescheduleCriticalSeconds must be between 0 and {limit}" if limit is not None else "is negative"
        yield invalid(f"{_STRATEGY}.adaptive.rescheduleCriticalSeconds", seconds, detail)


def _filter_faults(spec: Json) -> Iterator[Fault]:
    selector = member(spec, "targetFilter").get("selector")
    if selector is None:
        return
    try:
        Selector.compile(typed(selector, LabelSelector))
    except ValueError as error:
        yield invalid("spec.targetFilter", selector, str(error))


def _conflict_faults(spec: Json, target: TargetRef, others: Iterable[WorkloadSpread]) -> Iterator[Fault]:
    """Yield the fault of a second WorkloadSpread for the same workload, with any filter."""
    for other in others:
        if other.spec.target_ref.identity == target.identity and target.name:
            detail = f"TargetReference is in conflict with other WorkloadSpread {other.metadata.name}"
            yield invalid(_TARGET, _shown(spec), detail)
