"""Validation of a CloneSet, in the version of the request (cloneset.md §3.2, §3.3).

The rules read the raw document that the apiserver will store. Checks that need other objects are done elsewhere, and
their faults are passed in: the apiserver validates the pod template and, before it calls a validating webhook, object
metadata; admission looks the named pods up. The two versions hold the same rollout fields at different paths, so those
rules read one view of both (common.md §4, §11).
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from flotilla_common.api.admission.fields import NON_NEGATIVE, Fault, forbidden, invalid
from flotilla_common.api.admission.handlers import decoded
from flotilla_common.api.admission.workload import (
    LABEL_TOO_LONG,
    LONGEST_NAME,
    change_beyond_images,
    endless_faults,
    order_faults,
    selector_faults,
    selector_of,
    too_long,
)
from flotilla_common.api.documents import Json, mapping, member, sequence
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet, to_hub
from flotilla_common.api.numbers import integer, strict_value
from flotilla_common.api.versions import V1ALPHA1
from flotilla_common.api.workload import POLICIES

_TYPES = ("RollingUpdate", "OnDelete")

PODS_TO_DELETE = "spec.scaleStrategy.podsToDelete"
NO_DEADLINE = 2147483647
"""The progress deadline that means no deadline."""

LONGEST_POD_PREFIX = 247
"""The most characters of a name. Pods add a dash and 5 to it, and 253 are their limit."""

_MUTABLE = (
    "replicas",
    "template",
    "lifecycle",
    "scaleStrategy",
    "updateStrategy",
    "minReadySeconds",
    "progressDeadlineSeconds",
    "volumeClaimTemplates",
    "revisionHistoryLimit",
)
_IMMUTABLE = f"updates to cloneset spec for fields other than {', '.join(_MUTABLE)} are forbidden"


def check_types(document: Json) -> None:
    """Raise ValueError if a field that Flotilla reads has a wrong type."""
    decoded(to_hub(document), CloneSet)


def validate(
    document: Json, old: Json | None = None, template: Iterable[Fault] = (), pods: Iterable[Fault] = ()
) -> list[Fault]:
    """Return all faults, including those of its `template`, of `pods` to delete and of forbidden changes to `old`."""
    return [*(_change_faults(document, old) if old is not None else ()), *_spec_faults(document, template, pods)]


def duplicated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, each once."""
    return [name for name, count in Counter(names).items() if count > 1]


def newly_to_delete(document: Json, old: Json | None) -> list[str]:
    """Return names added to podsToDelete, or none in v1beta1, which leaves unknown names to the controller."""
    names: list[str] = _pods_to_delete(document)
    if document.get("apiVersion") != V1ALPHA1 or duplicated(names):
        return []
    known = set(_pods_to_delete(old)) if old else set[str]()
    return [name for name in names if name not in known]


def name_warnings(name: str, *, short_hash: bool) -> list[str]:
    """Return the warnings about a name that is too long for its pods; empty if it fits (cloneset.md §9)."""
    if longer := too_long(name, LONGEST_POD_PREFIX, "the pods' names get too long"):
        return longer
    if short_hash:
        return []
    return [f"{warning} (gate CloneSetShortHash avoids it)" for warning in too_long(name, LONGEST_NAME, LABEL_TOO_LONG)]


def _spec_faults(document: Json, template: Iterable[Fault], pods: Iterable[Fault]) -> Iterator[Fault]:
    spec = mapping(document.get("spec"))
    if _number(spec, "replicas") < 0:
        yield invalid("spec.replicas", spec["replicas"], NON_NEGATIVE)
    yield from selector_faults(spec, CLONE_SET.kind)
    yield from template
    yield from endless_faults(spec, CLONE_SET.kind)
    names = _pods_to_delete(document)
    if again := duplicated(names):
        yield invalid(PODS_TO_DELETE, list(names), f"duplicated items [{' '.join(again)}]")
    else:
        yield from pods
    yield from rollout_faults(document)
    if document.get("apiVersion") == V1ALPHA1:
        yield from _deadline_faults(spec)


def _deadline_faults(spec: Json) -> Iterator[Fault]:
    path, deadline = "spec.progressDeadlineSeconds", spec.get("progressDeadlineSeconds")
    if deadline is None:
        return
    if deadline < 0:
        yield invalid(path, deadline, NON_NEGATIVE)
    if deadline != NO_DEADLINE and deadline <= _number(spec, "minReadySeconds"):
        yield invalid(path, deadline, "must be greater than minReadySeconds")


def _change_faults(document: Json, old: Json) -> Iterator[Fault]:
    new, before = mapping(document.get("spec")), mapping(old.get("spec"))
    if selector_of(new) != selector_of(before):
        yield forbidden("spec", _IMMUTABLE)
    only_images = document.get("apiVersion") == V1ALPHA1 and member(new, "updateStrategy").get("type") == "InPlaceOnly"
    if only_images and (found := change_beyond_images(new, before)):
        yield forbidden("spec", f"only allowed to update images in spec for InPlaceOnly, but found {found}")


def _pods_to_delete(document: Json) -> list[str]:
    names = sequence(member(document, "spec", "scaleStrategy").get("podsToDelete"))
    return [name for name in names if isinstance(name, str)]


def _number(spec: Json, key: str) -> int:
    value = spec.get(key)
    return value if isinstance(value, int) else 0


def rollout_faults(document: Json) -> Iterator[Fault]:
    """Yield the faults of spec.updateStrategy."""
    spec = mapping(document.get("spec"))
    strategy = member(spec, "updateStrategy")
    given = strategy.get("type")
    path = "spec.updateStrategy"
    if document.get("apiVersion") == V1ALPHA1:
        if given not in POLICIES:
            yield invalid(f"{path}.type", given, f"must be {_either(POLICIES)}")
        yield from _Rollout(path, strategy, given, spec).faults()
        return
    if given not in (None, "", *_TYPES):
        yield invalid(f"{path}.type", given, f"must be {_either(_TYPES)}")
    if strategy.get("rollingUpdate") is None:
        return
    rolling = member(strategy, "rollingUpdate")
    policy = rolling.get("podUpdatePolicy")
    path += ".rollingUpdate"
    if policy not in (None, "", *POLICIES):
        yield invalid(f"{path}.podUpdatePolicy", policy, f"must be {_either(POLICIES)}")
    yield from _Rollout(path, rolling, policy, spec, unused=given == "OnDelete").faults()
    yield from _pre_download_faults(f"{path}.inPlaceUpdateStrategy", member(rolling, "inPlaceUpdateStrategy"))


class _Rollout:
    """The fields of a rollout. `unused`: the strategy is OnDelete, so absent numbers are ignored."""

    def __init__(self, path: str, fields: Json, policy: object, spec: Json, *, unused: bool = False) -> None:
        self.path = path
        self.fields = fields
        self.policy = policy
        self.unused = unused
        replicas = spec.get("replicas")
        self.replicas = max(replicas, 0) if isinstance(replicas, int) else 1

    def faults(self) -> Iterator[Fault]:
        partition, fault = self._scaled("partition")
        if fault:
            yield fault
        elif partition is not None and partition < 0:
            yield invalid(f"{self.path}.partition", self.fields["partition"], NON_NEGATIVE)
        yield from order_faults(self.path, self.fields)
        yield from self._limit_faults()

    def _limit_faults(self) -> Iterator[Fault]:
        unavailable, bad_unavailable = self._scaled("maxUnavailable")
        surge, bad_surge = self._scaled("maxSurge")
        if bad_unavailable:
            yield bad_unavailable
        if bad_surge:
            yield bad_surge
        if bad_unavailable or bad_surge:
            return
        if self.policy == "InPlaceOnly" and (surge or 0) > 0:
            yield invalid(f"{self.path}.maxSurge", self.fields["maxSurge"], "must be 0 for InPlaceOnly")
        idle = self.unused and unavailable is None
        if self.replicas > 0 and not idle and (unavailable or 0) < 1 and (surge or 0) < 1:
            detail = "maxUnavailable and maxSurge should not both be less than 1"
            yield invalid(f"{self.path}.maxUnavailable", self.fields.get("maxUnavailable"), detail)

    def _scaled(self, name: str) -> tuple[int | None, Fault | None]:
        value = self.fields.get(name)
        if value is None:
            return None, None
        try:
            return strict_value(value, self.replicas, round_up=True), None
        except ValueError as error:
            return None, invalid(f"{self.path}.{name}", value, str(error))


def _pre_download_faults(path: str, strategy: Json) -> Iterator[Fault]:
    parallelism = strategy.get("imagePreDownloadParallelism")
    if parallelism is not None and (reason := _parallelism_problem(parallelism)):
        yield invalid(f"{path}.imagePreDownloadParallelism", parallelism, reason)
    for name in ("imagePreDownloadTimeoutSeconds", "imagePreDownloadMinUpdatedReadyPods"):
        value = strategy.get(name)
        if isinstance(value, int) and value < 0:
            yield invalid(f"{path}.{name}", value, NON_NEGATIVE)


def _parallelism_problem(parallelism: int | str) -> str:
    number = integer(parallelism) if isinstance(parallelism, str) else parallelism
    if number is None:
        return "must be an integer, not a percentage"
    return "" if number >= 0 else NON_NEGATIVE


def _either(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
