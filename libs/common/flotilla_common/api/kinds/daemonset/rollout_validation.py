"""Validation of a DaemonSet's update strategy (daemonset.md §3.2)."""

from collections.abc import Iterator

from flotilla_common.api.admission.fields import Fault, invalid, not_supported, required
from flotilla_common.api.admission.workload import is_percent, share_problem
from flotilla_common.api.documents import Json, mapping, member
from flotilla_common.api.kinds.daemonset.conversion import IN_PLACE, STANDARD, SURGING
from flotilla_common.api.meta import IntOrString
from flotilla_common.api.numbers import integer
from flotilla_common.api.versions import V1ALPHA1

_STRATEGY = "spec.updateStrategy"
_ROLLING = f"{_STRATEGY}.rollingUpdate"
_TYPES = ("RollingUpdate", "OnDelete")


def rollout_faults(document: Json) -> Iterator[Fault]:
    """The faults of spec.updateStrategy."""
    strategy = member(document, "spec", "updateStrategy")
    given, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if given not in _TYPES:
        yield not_supported(_STRATEGY, given, _TYPES)
    elif given == "RollingUpdate" and rolling is None:
        yield required(_ROLLING)
    elif given == "RollingUpdate":
        yield from _rolling_faults(mapping(rolling), alpha=document.get("apiVersion") == V1ALPHA1)


def _rolling_faults(rolling: Json, *, alpha: bool) -> Iterator[Fault]:
    for name in ("maxUnavailable", "maxSurge", "partition"):
        yield from _share_faults(f"{_ROLLING}.{name}", rolling.get(name))
    unavailable, surge = _number(rolling.get("maxUnavailable")), _number(rolling.get("maxSurge"))
    if unavailable and surge:
        yield invalid(f"{_ROLLING}.maxSurge", rolling["maxSurge"], "may not be set when maxUnavailable is non-zero")
    if not unavailable and not surge:
        yield required(f"{_ROLLING}.maxUnavailable", "cannot be 0 when maxSurge is 0")
    match rolling.get("rollingUpdateType"):
        case "Standard":
            return
        case "InPlaceIfPossible":
            if surge:
                yield required(f"{_ROLLING}.maxSurge", "must be 0 for InPlaceIfPossible type")
        case "Surging" if alpha:
            if unavailable:
                yield required(f"{_ROLLING}.maxUnavailable", "must be 0 for Surging type")
        case other:
            known = (STANDARD, IN_PLACE, *((SURGING,) if alpha else ()))
            yield not_supported(f"{_ROLLING}.rollingUpdate.type", other, known)  # the path that users know


def _share_faults(path: str, value: IntOrString | None) -> Iterator[Fault]:
    if value is None:
        return
    if problem := share_problem(value):
        yield invalid(path, value, problem)
    elif is_percent(value) and _number(value) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def _number(value: IntOrString | None) -> int:
    """The literal number, of whatever; text that is none counts as 0."""
    if value is None or isinstance(value, int):
        return value or 0
    return max(integer(value.removesuffix("%")) or 0, 0)
