"""Decides whether a pod without extra tolerations could run on a node that is empty (broadcastjob.md §4.3).

It checks labels, affinity, taints, cordons, and room, by the scheduler's arithmetic.
"""

from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache

import msgspec

from flotilla_common.api import quantity
from flotilla_common.api.core import Container, Node, Pod, PodSpec, Resources
from flotilla_common.api.documents import mapping, typed
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.scheduling import Taint
from flotilla_common.workload.placement import Demands, Placement

Room = frozenset[tuple[str, Decimal]]
"""Amounts by resource."""

_Amounts = dict[str, Decimal]
_PODS = ("pods", Decimal(1))

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_MEMO = "strict_placement"


class StrictPlacement:
    """The demands of pods, compiled."""

    def __init__(self, spec: PodSpec) -> None:
        """Compile the demands. Raises ValueError for an invalid quantity."""
        self._placement = Placement(
            Demands(
                node_name=spec.node_name,
                node_selector=spec.node_selector,
                affinity=spec.affinity,
                tolerations=spec.tolerations,
            )
        )
        self._tolerates_cordons = any(toleration.tolerates(_CORDON) for toleration in spec.tolerations)
        self._requests = requests_of(spec)

    @classmethod
    def of(cls, template: bytes | msgspec.Raw) -> "StrictPlacement":
        """Return the placement of pods from a pod template as JSON. Raises ValueError."""
        return _of(bytes(template))

    @classmethod
    def of_pod(cls, pod: Pod) -> "StrictPlacement":
        """Return the placement of an existing pod. Raises ValueError."""
        known: StrictPlacement | None = pod.memo.get(_MEMO)
        if known is None:
            known = pod.memo[_MEMO] = cls(pod.spec)
        return known

    def why_not(self, node: Node) -> str:
        """Return why the pod could not run there, in the words of Kubernetes; empty if it could."""
        fit = self._placement.fit(node)
        if not fit.should_run:
            return fit.why_not
        if node.spec.unschedulable and not self._tolerates_cordons:
            return "is unschedulable"
        missing = lacking(self._requests, node)
        return f"Insufficient {', '.join(missing)}" if missing else ""


@lru_cache(maxsize=1024)
def _of(template: bytes) -> StrictPlacement:
    spec = mapping(mapping(read_json(template, object)).get("spec"))
    try:
        return StrictPlacement(typed(spec, PodSpec))
    except ValueError as error:  # msgspec.ValidationError is one
        raise ValueError(f"spec.template.spec: {error}") from error


def requests_of(spec: PodSpec) -> Room:
    """Return the requests of a pod, including its place. Raises ValueError for an invalid quantity.

    They are the larger of the sum of its containers, and of the most that any init container needs with the sidecars
    that were started before it.
    """
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
    """Return the resources of which the node has too little, by name."""
    return _lacking(requests, frozenset(node.status.allocatable.items()))


@lru_cache(maxsize=4096)  # most nodes are alike, and most pods of a job, too
def _lacking(requests: Room, allocatable: frozenset[tuple[str, str | int | float]]) -> tuple[str, ...]:
    there = _read(dict(allocatable))
    return tuple(sorted(name for name, amount in requests if there.get(name, Decimal(0)) < amount))


def _wanted(container: Container) -> _Amounts:
    return _amounts(container.resources)


def _amounts(resources: Resources) -> _Amounts:
    """Return the requests; a limit without a request is the request, too."""
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
