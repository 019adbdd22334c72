"""Validation of a StatefulSet, in the version of the request (statefulset.md §3.2, §3.3).

The rules read the raw document that the apiserver will store. Checks that need the apiserver are done elsewhere, and
their faults are passed in: those of the pod template and of changed claim templates.
"""

from collections.abc import Iterable, Iterator

from flotilla_common.api.admission.fields import (
    NON_NEGATIVE,
    Fault,
    forbidden,
    invalid,
    label_faults,
    not_supported,
    required,
)
from flotilla_common.api.admission.handlers import decoded
from flotilla_common.api.admission.workload import (
    change_beyond_images,
    endless_faults,
    is_percent,
    priority_problem,
    selector_faults,
    selector_of,
    share_problem,
)
from flotilla_common.api.documents import Json, mapping, mappings, member, sequence, text
from flotilla_common.api.keys import IN_PLACE_READY
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET, StatefulSet, interval, is_range, to_hub
from flotilla_common.api.meta import IntOrString
from flotilla_common.api.numbers import strict_value
from flotilla_common.api.workload import POLICIES

MAX_MIN_READY_SECONDS = 300

_STRATEGY = "spec.updateStrategy"
_ROLLING = f"{_STRATEGY}.rollingUpdate"
_PARALLEL_ONLY = "can only work with Parallel PodManagementPolicyType"

_MANAGEMENT = ("OrderedReady", "Parallel")
_RETENTION = ("Retain", "Delete")
_MUTABLE = (
    "replicas",
    "template",
    "updateStrategy",
    "scaleStrategy",
    "reserveOrdinals",
    "ordinals",
    "lifecycle",
    "persistentVolumeClaimRetentionPolicy",
    "volumeClaimTemplates",
    "volumeClaimUpdateStrategy",
    "revisionHistoryLimit",
)
_IMMUTABLE = f"updates to statefulset spec for fields other than {', '.join(_MUTABLE)} are forbidden"


def check_types(document: Json) -> None:
    """Raise ValueError if a field that Flotilla reads has a wrong type."""
    decoded(to_hub(document), StatefulSet)


def validate(
    document: Json, old: Json | None = None, template: Iterable[Fault] = (), claims: Iterable[Fault] = ()
) -> list[Fault]:
    """Return all faults, including those of its `template`, of changed `claims` and of forbidden changes to `old`."""
    spec = mapping(document.get("spec"))
    changes = _change_faults(spec, mapping(old.get("spec"))) if old is not None else ()
    return [*_name_faults(document), *_spec_faults(spec, template), *changes, *claims]


def _name_faults(document: Json) -> Iterator[Fault]:
    """Yield faults unless the name is a DNS label: pods are named after the set, and are host names."""
    return label_faults("metadata.name", text(member(document, "metadata").get("name")))


def _spec_faults(spec: Json, template: Iterable[Fault]) -> Iterator[Fault]:
    management = spec.get("podManagementPolicy")
    if not management:
        yield required("spec.podManagementPolicy")
    elif management not in _MANAGEMENT:
        yield invalid("spec.podManagementPolicy", management, "must be 'OrderedReady' or 'Parallel'")
    parallel = management == "Parallel"
    yield from ordinal_faults(spec)
    limit = member(spec, "scaleStrategy").get("maxUnavailable")
    if limit is not None:
        yield from limit_faults("spec.scaleStrategy.maxUnavailable", limit, parallel=parallel)
    yield from rollout_faults(spec, parallel=parallel)
    yield from _retention_faults(spec)
    if (spec.get("replicas") or 0) < 0:
        yield invalid("spec.replicas", spec["replicas"], NON_NEGATIVE)
    yield from selector_faults(spec, STATEFUL_SET.kind)
    yield from template
    yield from endless_faults(spec, STATEFUL_SET.kind)


def _retention_faults(spec: Json) -> Iterator[Fault]:
    path = "spec.persistentVolumeClaimRetentionPolicy"
    policy = spec.get("persistentVolumeClaimRetentionPolicy")
    if policy is None:
        return
    for name in ("whenDeleted", "whenScaled"):
        value = text(mapping(policy).get(name))
        if value not in _RETENTION:
            yield not_supported(f"{path}.{name}", value, _RETENTION)


def _change_faults(spec: Json, old: Json) -> Iterator[Fault]:
    if _fixed(spec) != _fixed(old):
        yield forbidden("spec", _IMMUTABLE)
    only_images = member(spec, "updateStrategy", "rollingUpdate").get("podUpdatePolicy") == "InPlaceOnly"
    if only_images and (change := change_beyond_images(spec, old)):
        detail = f"{change}, currently only image update is allowed for InPlaceOnly"
        yield forbidden("spec.template", f"invalid template modified with InPlaceOnly strategy: {detail}")


def _fixed(spec: Json) -> tuple[object, ...]:
    """Return the immutable fields. An absent name is an empty one."""
    return selector_of(spec), text(spec.get("serviceName")), text(spec.get("podManagementPolicy"))


def ordinal_faults(spec: Json) -> Iterator[Fault]:
    """Yield the faults of spec.reserveOrdinals and spec.ordinals."""
    for index, item in enumerate(sequence(spec.get("reserveOrdinals"))):
        yield from (invalid("spec", item, detail) for detail in _problems(index, item))
    start = member(spec, "ordinals").get("start") or 0
    if start < 0:
        yield invalid("spec.ordinals.start", start, NON_NEGATIVE)


def _problems(index: int, item: IntOrString) -> Iterator[str]:
    if isinstance(item, int):
        if item < 0:
            yield f"{index} th reserve ordinal is negative: {item}"
        return
    if not is_range(item):
        yield f"{index} th reserve ordinal is not a valid range: {item}"
    try:
        interval(item)
    except ValueError as error:
        yield f"{index} th reserve ordinal is invalid: {item}, err = {error}"


def rollout_faults(spec: Json, *, parallel: bool) -> Iterator[Fault]:
    """Yield the faults of spec.updateStrategy."""
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
    """Yield the faults of a number of pods that may be unavailable."""
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
