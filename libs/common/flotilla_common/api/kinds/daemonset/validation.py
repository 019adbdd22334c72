"""Validation of a DaemonSet, in the version of the request (daemonset.md §3.2, §3.3).

The rules read the raw document that the apiserver will store. The apiserver validates the pod template; its faults are
passed in.
"""

from collections.abc import Iterable, Iterator

from flotilla_common.api.admission.fields import NON_NEGATIVE, Fault, forbidden, invalid, not_supported, required
from flotilla_common.api.admission.handlers import decoded
from flotilla_common.api.admission.workload import (
    endless_faults,
    is_percent,
    selector_faults,
    selector_of,
    share_problem,
    too_long,
)
from flotilla_common.api.documents import Json, mapping, member
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, IN_PLACE, STANDARD, SURGING, DaemonSet, to_hub
from flotilla_common.api.meta import IntOrString
from flotilla_common.api.numbers import integer
from flotilla_common.api.versions import V1ALPHA1

_STRATEGY = "spec.updateStrategy"
_ROLLING = f"{_STRATEGY}.rollingUpdate"
_TYPES = ("RollingUpdate", "OnDelete")

LONGEST_NAME = 242
"""The most characters of a name: revisions add a dash and up to 10 digits, and 253 are their limit."""

_MUTABLE = (
    "template",
    "updateStrategy",
    "lifecycle",
    "burstReplicas",
    "minReadySeconds",
    "revisionHistoryLimit",
    "scaleStrategy",
)
_IMMUTABLE = f"updates to daemonset spec for fields other than {', '.join(_MUTABLE)} are forbidden"


def check_types(document: Json) -> None:
    """Raise ValueError if a field that Flotilla reads has a wrong type."""
    decoded(to_hub(document), DaemonSet)


def validate(document: Json, old: Json | None = None, template: Iterable[Fault] = ()) -> list[Fault]:
    """Return all faults, including those of its pod `template` and of forbidden changes to `old`."""
    spec = mapping(document.get("spec"))
    changes = _change_faults(spec, mapping(old.get("spec"))) if old is not None else ()
    return [*changes, *_spec_faults(document, spec, template)]


def name_warnings(name: str) -> list[str]:
    """Return the warnings about a name that is too long for its revisions; empty if it fits."""
    return too_long(name, LONGEST_NAME, "the revisions' names get too long")


def _change_faults(spec: Json, old: Json) -> Iterator[Fault]:
    """Yield the fault of a changed selector, the only immutable field of the schema."""
    if selector_of(spec) != selector_of(old):
        yield forbidden("spec", _IMMUTABLE)


def _spec_faults(document: Json, spec: Json, template: Iterable[Fault]) -> Iterator[Fault]:
    yield from selector_faults(spec, DAEMON_SET.kind)
    yield from template
    yield from endless_faults(spec, DAEMON_SET.kind)
    for name in ("minReadySeconds", "revisionHistoryLimit"):
        if (spec.get(name) or 0) < 0:
            yield invalid(f"spec.{name}", spec[name], NON_NEGATIVE)
    yield from rollout_faults(document)
    if member(spec, "lifecycle").get("inPlaceUpdate") is not None:
        yield forbidden("spec.lifecycle.inPlaceUpdate", "inPlaceUpdate hook has not supported yet")


def rollout_faults(document: Json) -> Iterator[Fault]:
    """Yield the faults of spec.updateStrategy."""
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
            yield not_supported(f"{_ROLLING}.rollingUpdate.type", other, known)  # the reference's path


def _share_faults(path: str, value: IntOrString | None) -> Iterator[Fault]:
    if value is None:
        return
    if problem := share_problem(value):
        yield invalid(path, value, problem)
    elif is_percent(value) and _number(value) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def _number(value: IntOrString | None) -> int:
    """Return the number in a value or percentage, else 0."""
    if value is None or isinstance(value, int):
        return value or 0
    return max(integer(value.removesuffix("%")) or 0, 0)
