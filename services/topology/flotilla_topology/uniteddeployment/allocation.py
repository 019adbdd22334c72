"""Allocates the replicas of a UnitedDeployment to its subsets (uniteddeployment.md §7).

There are four allocators, all pure: by fixed numbers, by minimum and maximum, adaptive, and with reserved pods. Each
takes the total and the subsets in the order of the spec, and returns replicas by subset name.
"""

from collections.abc import Sequence

import msgspec

from flotilla_common.api.meta import IntOrString
from flotilla_common.api.numbers import integer

UNLIMITED = (1 << 31) - 1

Allocation = dict[str, int]


class AllocationError(ValueError):
    """The numbers of the subsets contradict the total; nothing changes until the spec is corrected."""


class Child(msgspec.Struct, frozen=True, kw_only=True):
    """The allocator's view of a subset's workload."""

    replicas: int = 0  # its spec.replicas
    placed: int = 0  # its replicas minus the unschedulable pods
    reserved: int = 0  # pods that wait for a node while others replace them
    unschedulable: bool = False  # found in this pass
    marked: bool = False  # found in the previous pass


class Subset(msgspec.Struct, frozen=True, kw_only=True):
    """A subset of the topology with the settings of its spec."""

    name: str
    replicas: IntOrString | None = None
    minimum: IntOrString | None = None
    maximum: IntOrString | None = None
    child: Child | None = None  # None: not created yet


def allocate(subsets: Sequence[Subset], total: int, *, adaptive: bool, reserves: bool) -> Allocation:
    """Return the replicas of each subset (§7.2). Raises AllocationError."""
    if adaptive and reserves:
        return _with_reserved(subsets, total)
    if adaptive:
        return _fill(subsets, _adapted(subsets, total), total)
    if any(subset.minimum is not None or subset.maximum is not None for subset in subsets):
        return _fill(subsets, _bounds(subsets, total), total)
    return _specified(subsets, total)


def scaled(value: IntOrString, total: int) -> int:
    """Resolve a number, or a percentage of the total rounded half up (§7.1). Raises ValueError."""
    if isinstance(value, int):
        if value < 0:
            raise ValueError(f"{value} is negative")
        return value
    percent = integer(value[:-1]) if value.endswith("%") else None
    if percent is None or not 0 <= percent <= 100:
        raise ValueError(f"{value!r} is not a whole percentage between 0% and 100%")
    return (total * percent + 50) // 100


def _specified(subsets: Sequence[Subset], total: int) -> Allocation:
    """Give subsets their specified numbers and share the rest evenly; the remainder goes to the largest (§7.2.1)."""
    given: Allocation = {}
    for subset in subsets:
        share = _scaled_or(None, subset.replicas, total)
        if share is not None:
            given[subset.name] = share
    others = [subset for subset in subsets if subset.name not in given]
    taken = sum(given.values())
    if taken > total:
        raise AllocationError(
            f"specified subsets' replica ({taken}) is greater than UnitedDeployment replica ({total})"
        )
    if taken < total and not others:
        raise AllocationError(f"specified subsets' replica ({taken}) is less than UnitedDeployment replica ({total})")
    return given | _evenly(others, total - taken)


def _evenly(subsets: Sequence[Subset], total: int) -> Allocation:
    if not subsets:
        return {}
    each, extra = divmod(total, len(subsets))
    ascending = sorted(subsets, key=lambda subset: (subset.child.replicas if subset.child else 0, subset.name))
    smaller = len(subsets) - extra
    return {subset.name: each + (position >= smaller) for position, subset in enumerate(ascending)}


class _Bounds(msgspec.Struct, frozen=True):
    least: int
    most: int


def _bounds(subsets: Sequence[Subset], total: int) -> list[_Bounds]:
    """Return the bounds of each subset as specified. Raises AllocationError."""
    bounds: list[_Bounds] = []
    for index, subset in enumerate(subsets):
        least = _scaled_or(0, subset.minimum, total) or 0
        most = UNLIMITED if subset.maximum is None else _scaled_or(0, subset.maximum, total) or 0
        if least > most:
            raise AllocationError(
                f"subset[{index}].maxReplicas({most}) must be more than or equal to minReplicas({least})"
            )
        bounds.append(_Bounds(least, most))
    return bounds


def _adapted(subsets: Sequence[Subset], total: int) -> list[_Bounds]:
    """Return bounds that keep placed pods in their subset and give unschedulable subsets no more (§7.4).

    The reference counts ready pods instead: during a rollout, when one pod after the other is not ready, pods would
    leave their subset.
    """
    return [_adapt(subset.child, bounds) for subset, bounds in zip(subsets, _bounds(subsets, total), strict=True)]


def _adapt(child: Child | None, bounds: _Bounds) -> _Bounds:
    if child is None:
        return bounds
    if child.unschedulable:
        return _Bounds(max(child.placed, bounds.least), min(child.placed, bounds.most))
    return _Bounds(max(bounds.least, min(child.placed, bounds.most)), bounds.most)


def _fill(subsets: Sequence[Subset], bounds: Sequence[_Bounds], total: int) -> Allocation:
    """Fill the minima in the order of the spec, then up to the maxima (§7.3). The rest is not allocated."""
    given: Allocation = {}
    for subset, bound in zip(subsets, bounds, strict=True):
        given[subset.name] = max(0, min(bound.least, total - sum(given.values())))
    left = total - sum(given.values())
    for subset, bound in zip(subsets, bounds, strict=True):
        more = max(0, min(bound.most - bound.least, left))
        given[subset.name] += more
        left -= more
    return given


class _Record:
    """The capacity of a subset while pods are reserved, and its allocation so far (§7.5)."""

    def __init__(self, child: Child | None) -> None:
        stuck = child is not None and (child.unschedulable or child.marked)
        self._capacity = child.replicas - child.reserved if child is not None and stuck else UNLIMITED
        self.allocated = 0

    def allocate(self, up_to: int, rest: int) -> int:
        """Raise the allocation to `up_to` within the rest, and return how many of the added pods can serve.

        Reserved pods do not serve.
        """
        more = min(up_to - self.allocated, rest)
        self.allocated += more
        self._capacity -= more
        return more if self._capacity >= 0 else max(0, more + self._capacity)


def _with_reserved(subsets: Sequence[Subset], total: int) -> Allocation:
    """Keep unschedulable pods, and give later subsets as many more; the sum may exceed the total (§7.5)."""
    bounds = _bounds(subsets, total)
    records = [_Record(subset.child) for subset in subsets]
    steps = [(record, bound.least) for record, bound in zip(records, bounds, strict=True)]
    for record, subset, bound in zip(records, subsets, bounds, strict=True):
        stuck = subset.child is not None and subset.child.unschedulable
        steps.append((record, subset.child.replicas if subset.child is not None and stuck else bound.most))
    rest = total
    for record, up_to in steps:
        if rest <= 0:
            break
        rest -= record.allocate(up_to, rest)
    return {subset.name: record.allocated for subset, record in zip(subsets, records, strict=True)}


def _scaled_or(otherwise: int | None, value: IntOrString | None, total: int) -> int | None:
    """Resolve the value, or return `otherwise` if it is absent or unreadable.

    Unreadable values only come past admission (§7.2).
    """
    if value is None:
        return otherwise
    try:
        return scaled(value, total)
    except ValueError:
        return otherwise
