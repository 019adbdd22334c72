"""Whether a node is large enough for a pod, were it empty (broadcastjob.md §4.3), by the scheduler's arithmetic."""

from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache

from flotilla_common.api import quantity
from flotilla_common.api.core import Container, Node, PodSpec, Resources

Room = frozenset[tuple[str, Decimal]]
"""Amounts by resource."""

_Amounts = dict[str, Decimal]
_PODS = ("pods", Decimal(1))


def requests_of(spec: PodSpec) -> Room:
    """What a pod takes up: its place, and the larger of what its containers want together and what any of its init
    containers wants beside the sidecars started before it. Raises ValueError: a quantity cannot be read."""
    sidecars: _Amounts = {}
    most: _Amounts = {}
    for container in spec.init_containers:
        wanted = _amounts(container.resources)
        if container.restart_policy == "Always":
            sidecars = _sum([sidecars, wanted])
            wanted = {}
        most = _larger(most, _sum([sidecars, wanted]))
    together = _larger(most, _sum([sidecars, *map(_wanted, spec.containers)]))
    total = _sum([together | _amounts(spec.resources), _read(spec.overhead)])
    return frozenset([*((name, amount) for name, amount in total.items() if amount), _PODS])


def lacking(requests: Room, node: Node) -> tuple[str, ...]:
    """The resources of which the node has too little, by name."""
    return _lacking(requests, frozenset(node.status.allocatable.items()))


@lru_cache(maxsize=4096)  # most nodes are like others, and most pods of a job, too
def _lacking(requests: Room, allocatable: frozenset[tuple[str, str | int | float]]) -> tuple[str, ...]:
    there = _read(dict(allocatable))
    return tuple(sorted(name for name, amount in requests if there.get(name, Decimal(0)) < amount))


def _wanted(container: Container) -> _Amounts:
    return _amounts(container.resources)


def _amounts(resources: Resources) -> _Amounts:
    """A limit without a request is the request, too."""
    return _read({**resources.limits, **resources.requests})


def _read(quantities: dict[str, str | int | float]) -> _Amounts:
    return {name: quantity.parse(amount) for name, amount in quantities.items()}


def _sum(parts: Iterable[_Amounts]) -> _Amounts:
    total: _Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, Decimal(0)) + amount
    return total


def _larger(one: _Amounts, other: _Amounts) -> _Amounts:
    return one | {name: max(amount, one.get(name, Decimal(0))) for name, amount in other.items()}
