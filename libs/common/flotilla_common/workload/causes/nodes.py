"""Causes of pods whose node is gone or not ready: the status of such a pod is out of date."""

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import Condition, rfc3339
from flotilla_common.workload.causes.cause import Cause, PodContext, bare


def node_cause(pod: Pod, around: PodContext) -> Cause | None:
    """Return the problem of the pod's node; None for a healthy or unknown node, and for a pod without a node."""
    trouble = node_trouble(pod.spec.node_name, around)
    return Cause(code="NodeNotReady", message=trouble) if trouble else _suspected(pod)


def node_trouble(name: str, around: PodContext) -> str:
    """Return why the node cannot run pods; empty if it is ready, or not known.

    Example: "node n1 is not ready since 2026-03-01T12:00:05Z: NodeStatusUnknown: Kubelet stopped posting node status."
    """
    trouble = _condition(name, around)
    if not trouble and name in around.silent:
        since = rfc3339(around.silent[name])
        return f"node {name} is not ready: its kubelet is silent, it renewed its lease last at {since}"
    return trouble


def _condition(name: str, around: PodContext) -> str:
    if name not in around.nodes:
        return ""
    node = around.nodes[name]
    if node is None:
        return f"node {name} does not exist any more"
    ready = next((condition for condition in node.status.conditions if condition.type == "Ready"), None)
    if ready is None:
        return f"node {name} has not reported its readiness yet"
    return "" if ready.status == "True" else f"node {name} is not ready{_since_heartbeat(ready)}{_why(ready)}"


def _since_heartbeat(ready: Condition) -> str:
    return f" since {rfc3339(ready.last_transition_time)}" if ready.last_transition_time is not None else ""


def _why(ready: Condition) -> str:
    told = ": ".join(filter(None, (ready.reason, bare(ready.message))))
    return f": {told}" if told else ""


def _suspected(pod: Pod) -> Cause | None:
    """Return the cause of a pod that is not Ready although its containers and gates are.

    The node controller sets the condition so when a node does not report.
    """
    conditions = pod.conditions
    ready, containers = conditions.get("Ready"), conditions.get("ContainersReady")
    if ready is None or ready.status != "False" or ready.reason or containers is None or containers.status != "True":
        return None
    if any((gate := conditions.get(name)) is None or gate.status != "True" for name in pod.gates):
        return None
    text = f"node {pod.spec.node_name} does not report: the pod is not Ready although all of its containers are"
    return Cause(code="NodeNotReady", message=text)
