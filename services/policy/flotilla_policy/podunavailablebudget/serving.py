"""Determines whether pods serve, once per version of a pod, and why others do not."""

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import rfc3339
from flotilla_common.gates import Gates
from flotilla_common.workload.budget import is_consistent, is_ready, is_unavailable_by_label

_MEMO = "serves a budget"


def serves(pod: Pod, gates: Gates) -> bool:
    """Report whether the pod is ready and runs what its spec says, which is all that counts besides budget entries."""
    held = pod.memo.get(_MEMO)
    if held is None:
        held = pod.memo[_MEMO] = is_ready(pod) and is_consistent(pod, gates)
    return bool(held)


def why_not(pod: Pod) -> str:
    """Describe why the pod does not serve, and until or since when."""
    end = pod.metadata.deletion_timestamp
    if end is not None:
        return f"terminating, due to end by {rfc3339(end)}"
    if is_unavailable_by_label(pod.metadata.labels):
        return "unavailable by a label"
    if is_ready(pod):
        return "being updated in place"
    condition = pod.conditions.get("Ready")
    since = None if condition is None else condition.last_transition_time
    return "not ready" if since is None else f"not ready since {rfc3339(since)}"
