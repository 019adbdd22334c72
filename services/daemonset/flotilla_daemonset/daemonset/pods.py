"""Classifies the pods of a DaemonSet, and the nodes that should have a pod or have one.

See daemonset.md §4.2, §4.4, §4.5 and §4.8. Pods are classified by ownership, revision and availability, then put
together with their nodes.
"""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.keys import SPECIFIED_DELETE_LABEL
from flotilla_common.api.meta import controller_of, later
from flotilla_common.api.selectors import Selector
from flotilla_common.workload.lifecycle import PREPARING_DELETE
from flotilla_common.workload.placement import Fit, Placement, node_of
from flotilla_common.workload.predicates import is_serving

GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"
"""On a DaemonSet converted from an old built-in one: the generation of its template."""

GENERATION_LABEL = "pod-template-generation"
"""The same on its pods."""

_OWN = "daemonset_owner"
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_MOMENT = 0.001  # a pod is available *after* minReadySeconds, not at their end


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """The pods by ownership."""

    own: list[Pod]  # including adopted pods
    strays: list[Pod]  # to be released
    orphans: list[Pod]  # to be adopted


def classify(pods: Iterable[Pod], orphans: Iterable[Pod], uid: str, selector: Selector) -> Membership:
    """Classify pods that refer to the DaemonSet, and pods without a controller."""
    members = Membership(own=[], strays=[], orphans=[])
    question = (uid, str(selector))
    for pod in pods:
        if pod.memo.get(_OWN) == question:  # nearly always
            members.own.append(pod)
        elif (controller := controller_of(pod.metadata)) is not None and controller.uid == uid:
            if selector.matches(pod.metadata.labels):
                pod.memo[_OWN] = question
                members.own.append(pod)
            else:
                members.strays.append(pod)
    for pod in orphans:
        if pod.metadata.deletion_timestamp is None and selector.matches(pod.metadata.labels):
            members.orphans.append(pod)
            members.own.append(pod)
    return members


class Criteria(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions under which a pod is updated and available."""

    hashes: frozenset[str]  # of the revisions that hold the template
    generation: str  # the annotation of a converted DaemonSet; empty without it
    min_ready_seconds: int
    now: datetime

    def is_updated(self, pod: Pod) -> bool:
        """Report whether the pod is of the current template."""
        # A hash overrides an old generation, which would freeze updates.
        if pod.revision or not self.generation:
            return pod.revision in self.hashes
        return pod.metadata.labels.get(GENERATION_LABEL) == self.generation

    def is_available(self, pod: Pod) -> bool:
        """Report whether the pod serves, and has been ready for longer than minReadySeconds."""
        if not self.min_ready_seconds:
            return is_serving(pod)
        at = self.available_at(pod)
        return at is not None and at <= self.now

    def available_at(self, pod: Pod) -> datetime | None:
        """Return when the pod becomes available if it stays ready; None if it does not serve."""
        if not is_serving(pod) or pod.ready_since is None:
            return None
        return later(later(pod.ready_since, self.min_ready_seconds), _MOMENT)


def is_terminating(pod: Pod) -> bool:
    """Report whether the pod is being deleted."""
    return pod.metadata.deletion_timestamp is not None


def is_running(pod: Pod) -> bool:
    """Report whether the pod stays: not terminating, not failed, not PreparingDelete."""
    return not is_terminating(pod) and pod.status.phase != "Failed" and pod.state != PREPARING_DELETE


def is_specified(pod: Pod) -> bool:
    """Report whether the pod carries the specified-delete label."""
    return SPECIFIED_DELETE_LABEL in pod.metadata.labels


def in_order(pods: list[Pod]) -> list[Pod]:
    """Sort the pods: scheduled pods first, then older ones, then by name."""
    return pods if len(pods) < 2 else sorted(pods, key=_order)


def _order(pod: Pod) -> tuple[bool, datetime, str]:
    return not pod.spec.node_name, pod.metadata.creation_timestamp or _EARLIEST, pod.metadata.name


class NodeState(msgspec.Struct, frozen=True, kw_only=True):
    """One node, with the pods that are on it or were created for it."""

    node: Node
    fit: Fit
    pods: list[Pod]  # in order, terminating ones included
    living: list[Pod]  # the pods that are not terminating
    new: Pod | None = None  # the first updated pod among these
    old: Pod | None = None  # the first outdated pod among these
    messy: bool = False  # several updated or several outdated pods
    done: bool = False  # should have a pod, and has just one: updated, available and staying, as nearly all nodes

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.node.metadata.name

    @property
    def first(self) -> Pod | None:
        """The pod that the status counts."""
        return self.pods[0] if self.pods else None


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes and pods of a DaemonSet, matched with each other."""

    nodes: list[NodeState]  # nodes that should have a pod or have one, by name
    pending: list[NodeState]  # the nodes that are not done
    desired: int  # the number of nodes that should have a pod
    lost: list[Pod]  # pods created for a node that does not exist
    excluded: dict[str, list[str]]  # names of nodes that get no pod, by cause


def node_view(nodes: Iterable[Node], pods: Collection[Pod], placement: Placement, criteria: Criteria) -> NodeView:
    """Match pods with nodes. A pod created for no node is ignored."""
    by_node = _by_node(pods)
    states: list[NodeState] = []
    excluded: dict[str, list[str]] = {}
    desired = 0
    for node in nodes:
        fit = placement.fit(node)
        desired += fit.should_run
        mine = by_node.pop(node.metadata.name, None)
        if mine is not None or fit.should_run:
            states.append(_node_state(node, fit, mine or [], criteria))
        if not fit.should_run:
            excluded.setdefault(fit.why_not, []).append(node.metadata.name)
    states.sort(key=lambda state: state.node.metadata.name)
    lost = [pod for left in by_node.values() for pod in left if not pod.spec.node_name]
    pending = [state for state in states if not state.done]
    return NodeView(nodes=states, pending=pending, desired=desired, lost=lost, excluded=excluded)


def _by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if node := node_of(pod):
            by_node.setdefault(node, []).append(pod)
    return by_node


def _node_state(node: Node, fit: Fit, pods: list[Pod], criteria: Criteria) -> NodeState:
    if len(pods) == 1 and fit.should_run:
        (pod,) = pods
        if is_running(pod) and not is_specified(pod) and criteria.is_updated(pod) and criteria.is_available(pod):
            return NodeState(node=node, fit=fit, pods=pods, living=pods, new=pod, done=True)
    pods = in_order(pods)
    living = [pod for pod in pods if not is_terminating(pod)]
    new = [pod for pod in living if criteria.is_updated(pod)]
    old = [pod for pod in living if not criteria.is_updated(pod)]
    return NodeState(
        node=node,
        fit=fit,
        pods=pods,
        living=living,
        new=new[0] if new else None,
        old=old[0] if old else None,
        messy=len(new) > 1 or len(old) > 1,
    )
