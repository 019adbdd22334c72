"""Validation of a CloneSet's update strategy (cloneset.md §3.2, common.md §4, §11).

The two versions hold the same rollout fields at different paths, so the rules look at one view of both.
"""

from collections.abc import Iterator

from flotilla_common.api.admission.fields import NON_NEGATIVE, Fault, invalid
from flotilla_common.api.admission.workload import order_faults
from flotilla_common.api.documents import Json, mapping, member
from flotilla_common.api.numbers import integer, strict_value
from flotilla_common.api.rollout import POLICIES
from flotilla_common.api.versions import V1ALPHA1

_TYPES = ("RollingUpdate", "OnDelete")


def rollout_faults(document: Json) -> Iterator[Fault]:
    """The faults of spec.updateStrategy."""
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
    """One rollout's fields. `unused`: the strategy is OnDelete, so absent numbers mean nothing."""

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
