"""Surveys the nodes that should have a pod or have one (daemonset.md §4.2, §4.8 step A)."""

from collections.abc import Collection, Iterable

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.workload.placement import Fit, Placement, node_of
from flotilla_daemonset.daemonset.pods import Criteria, in_order, is_running, is_specified, is_terminating


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
            states.append(_state(node, fit, mine or [], criteria))
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


def _state(node: Node, fit: Fit, pods: list[Pod], criteria: Criteria) -> NodeState:
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
