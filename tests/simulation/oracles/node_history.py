"""The states of nodes, with the pods of a DaemonSet, over time (daemonset.md §4.8)."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Generic, TypeVar

import msgspec

from flotilla_common.api import keys
from flotilla_common.api.core import Pod
from flotilla_common.workload.revision_codec import belongs
from tests.simulation.oracles.population import PREPARING_DELETE
from tests.simulation.oracles.view import View, Workload

T = TypeVar("T")


class Timeline(Generic[T]):
    """The values of one thing over time."""

    def __init__(self) -> None:
        self.values: list[tuple[float, T]] = []

    @property
    def now(self) -> T:
        """Return the last value."""
        return self.values[-1][1]

    def record(self, at: float, value: T) -> None:
        """Record the value from this time on."""
        if not self.values or self.now != value:
            self.values.append((at, value))

    def lately(self, since: float) -> Iterator[T]:
        """Yield all values since a time."""
        for index, (_, value) in enumerate(self.values):
            if index + 1 == len(self.values) or self.values[index + 1][0] >= since:
                yield value


class NodeState(msgspec.Struct, frozen=True):
    """The state of a node: those pods of one DaemonSet that are not being deleted."""

    old: bool = False  # there is one of an older revision
    new: bool = False  # there is one of the newest
    up: bool = False  # one of them is available
    renewed: bool = False  # a new one is

    @property
    def stays(self) -> bool:
        """Report whether the node has not been updated."""
        return self.old and not self.new


def is_down(state: NodeState) -> bool:
    """Report whether no pod is available, for any reason."""
    return not state.up


def is_doubled(state: NodeState) -> bool:
    """Report whether the new pod beside an available old one is not available yet."""
    return state.up and state.new and not state.renewed


class DaemonSetHistory:
    """The history of one DaemonSet on its nodes."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.newest: Timeline[str] = Timeline()  # the revision that pods are to have
        self.wanted: Timeline[int] = Timeline()  # how many nodes are to have one
        self._states: dict[str, Timeline[NodeState]] = {}
        self._ours: set[tuple[str, float]] = set()  # changes that we made: the node, and when

    def look(self, view: View, nodes: Iterable[str], wanted: int, *, ours: bool) -> None:
        """Record the states of nodes after a commit, by us or by others."""
        revisions = view.revisions_of(self.workload)
        self.newest.record(view.at, str(revisions[-1]["metadata"]["name"]) if revisions else "")
        self.wanted.record(view.at, wanted)
        for node in nodes:
            timeline = self._states.setdefault(node, Timeline())
            timeline.record(view.at, self._state(view, node))
            if ours and timeline.values[-1][0] == view.at:
                self._ours.add((node, view.at))

    def on(self, node: str) -> Iterator[Pod]:
        """Yield the pods that are on a node or were created for it, in any state."""
        return (pod for pod in self.workload.pods.values() if node_of(pod) == node)

    def staying(self, node: str) -> Iterator[Pod]:
        """Yield the pods on a node that are not being deleted."""
        return (pod for pod in self.on(node) if not pod.metadata.deletion_timestamp and pod.state != PREPARING_DELETE)

    def living(self, node: str) -> Iterator[Pod]:
        """Yield the pods on a node that are not being deleted and have not failed."""
        return filter(self.workload.counts, self.staying(node))

    def is_new(self, pod: Pod) -> bool:
        """Report whether the pod has the newest revision."""
        return belongs(pod.revision, self.newest.now)

    def stays(self, node: str, since: float) -> bool:
        """Report whether the node is on an old revision, as far as a controller can see.

        Pods that others deleted within the visibility lag count as still there.
        """
        values = self._states[node].values if node in self._states else []
        if not values or values[-1][1].stays:
            return bool(values)
        taken = [at for (_, before), (at, _) in pairwise(values) if before.stays and not self._was_ours(node, at)]
        return any(at >= since for at in taken)

    def is_known(self, what: Callable[[NodeState], bool], node: str, since: float) -> bool:
        """Report whether a controller must know that the node is in such a state.

        It must if we caused the state by taking an available pod, or if the state has lasted for longer than the
        visibility lag.
        """
        values = self._states[node].values if node in self._states else []
        start = len(values)
        while start > 0 and what(values[start - 1][1]):
            start -= 1
        if start == len(values):
            return False
        at = values[start][0]
        return at < since or (start > 0 and values[start - 1][1].up and self._was_ours(node, at))

    def state(self, node: str) -> NodeState:
        """Return the state of the node now."""
        return self._states[node].now if node in self._states else NodeState()

    def lately(self, node: str, since: float) -> Iterator[NodeState]:
        """Yield the states of the node since a time."""
        return self._states[node].lately(since) if node in self._states else iter(())

    def _state(self, view: View, node: str) -> NodeState:
        pods = list(self.staying(node))
        new = [self.is_new(pod) for pod in pods]
        up = [self.workload.available(pod, view.now) for pod in pods]
        renewed = any(map(all, zip(new, up, strict=True)))
        return NodeState(old=not all(new), new=any(new), up=any(up), renewed=renewed)

    def _was_ours(self, node: str, at: float) -> bool:
        return (node, at) in self._ours


def is_begun(pod: Pod) -> bool:
    """Report whether an in-place update keeps the pod out of service."""
    condition = pod.conditions.get(keys.IN_PLACE_READY)
    return condition is not None and condition.status == "False"


def node_of(pod: Pod) -> str:
    """Return the node that the pod is on, or the one that it requires."""
    if pod.spec.node_name:
        return pod.spec.node_name
    required = pod.spec.affinity.required if pod.spec.affinity is not None else None
    fields = [field for term in required.node_selector_terms for field in term.match_fields] if required else []
    return next((field.values[0] for field in fields if field.values), "")
