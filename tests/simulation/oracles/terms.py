"""The terms of a workload at one moment, in numbers: the measure of the oracles.

A workload kind joins by one function that reads its spec into `Terms`: `TERMS` in its file of scenarios. The functions
are deliberately not the planner's own: a mistake there must not become the measure.
"""

from collections.abc import Callable

import msgspec

from flotilla_common.api.meta import IntOrString
from flotilla_common.api.numbers import lenient_value
from flotilla_common.api.selectors import Selector
from flotilla_common.api.workload import Lifecycle
from flotilla_common.control.plan import Json
from tests.simulation.cluster.node_fit import HARD, repelled_by, selects


class Numbered(msgspec.Struct, frozen=True, kw_only=True):
    """The terms of pods with ordinals (statefulset.md §4.2)."""

    name: str  # what they begin with, but for a dash
    ordinals: tuple[int, ...]  # that should be there, ascending
    in_order: bool = False  # one thing at a time
    by_hand: bool = False  # old pods are replaced when users delete them
    waiting: int | None = None  # a pod is made only while fewer of those below it are not available; None: at any time
    kept: frozenset[int] = frozenset()  # ordinals that stay on the current revision
    claims: tuple[str, ...] = ()  # what the names of their claims begin with
    with_set: bool = False  # the claims go with the workload
    with_pod: bool = False  # the claims of a pod that is not wanted go with it

    def of(self, pod_name: str) -> int:
        """Return the ordinal of a pod, -1 if it is none of these."""
        return _number(pod_name, self.name)

    def of_claim(self, claim_name: str) -> int:
        """Return the ordinal of a claim, -1 if it is none of theirs."""
        return max((_number(claim_name, f"{claim}-{self.name}") for claim in self.claims), default=-1)


def _number(name: str, prefix: str) -> int:
    digits = name.removeprefix(f"{prefix}-")
    return int(digits) if digits != name and digits.isdecimal() else -1


class PerNode(msgspec.Struct, frozen=True, kw_only=True):
    """The terms of a workload with one pod per node (daemonset.md §4). Shares are of the nodes that want a pod."""

    spec: Json  # of the pods
    rolls: bool = True  # old pods are replaced
    chosen: Selector  # nodes whose old pods are
    unavailable: IntOrString = 0  # most nodes that are out of service because of it
    surge: IntOrString = 0  # most nodes that have a second pod because of it
    partition: IntOrString = 0  # nodes that stay on old revisions
    progressive: bool = False  # the partition holds for first pods as well

    def wants(self, node: Json) -> bool:
        """Report whether the node wants a pod."""
        return selects(self.spec, node) and not repelled_by(self.spec, node, HARD)

    def keeps(self, node: Json) -> bool:
        """Report whether an existing pod may stay."""
        return selects(self.spec, node) and not repelled_by(self.spec, node, ("NoExecute",))

    def updates(self, node: Json) -> bool:
        """Report whether an old pod on the node may be replaced, within the limits."""
        return self.rolls and self.chosen.matches(node["metadata"].get("labels", {}))

    def max_unavailable(self, nodes: int) -> int:
        """Return maxUnavailable for this number of nodes."""
        return lenient_value(self.unavailable, nodes, round_up=True) or (0 if self.max_surge(nodes) else 1)

    def max_surge(self, nodes: int) -> int:
        """Return maxSurge for this number of nodes; above 0, old pods stay until new ones are available."""
        return lenient_value(self.surge, nodes, round_up=True)

    def kept(self, nodes: int) -> int:
        """Return how many nodes stay on old revisions."""
        return lenient_value(self.partition, nodes, round_up=False)


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The terms that a controller must keep while the object has this spec."""

    selector: Selector
    replicas: int
    max_unavailable: int = 0
    max_surge: int = 0
    partition: int = 0
    min_ready_seconds: int = 0
    lifecycle: Lifecycle | None = None
    stateless: bool = False  # pods have no lifecycle state
    keeps_claims: bool = False  # claims of pods that others deleted wait for a new pod
    spares_preparing: bool = False  # pods in PreparingDelete do not count against replicas
    to_delete: frozenset[str] = frozenset()  # pods that the user named
    recreates: bool = False  # running pods must never be changed
    current_revision: str = ""  # what the status says
    terminating: bool = False
    numbered: Numbered | None = None  # None: pods are alike
    per_node: PerNode | None = None  # None: any node will do

    def wants(self, pod_name: str) -> bool:
        """Report whether a pod of this name is wanted."""
        return self.numbered is None or self.numbered.of(pod_name) in self.numbered.ordinals


Reader = Callable[[Json], Terms]
