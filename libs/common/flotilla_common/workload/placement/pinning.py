"""Pods that are made for one node, to which the scheduler binds them by their affinity (daemonset.md §4.7)."""

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, mapping

NAME_FIELD = "metadata.name"
_MEMO = "pinned_to"


def pinned(spec: Json, node: str) -> Json:
    """The pod spec, for this node alone: the nodes that it demands are replaced, those that it prefers are kept."""
    affinity = mapping(spec.get("affinity"))
    demanded = {"nodeSelectorTerms": [{"matchFields": [{"key": NAME_FIELD, "operator": "In", "values": [node]}]}]}
    nodes = {**mapping(affinity.get("nodeAffinity")), "requiredDuringSchedulingIgnoredDuringExecution": demanded}
    return {**spec, "affinity": {**affinity, "nodeAffinity": nodes}}


def node_of(pod: Pod) -> str:
    """The node that the pod is on or made for; empty if it is made for none."""
    if pod.spec.node_name:
        return pod.spec.node_name
    known: str | None = pod.memo.get(_MEMO)
    if known is None:
        known = pod.memo[_MEMO] = _demanded(pod)
    return known


def _demanded(pod: Pod) -> str:
    demanded = pod.spec.affinity.required if pod.spec.affinity is not None else None
    for term in demanded.node_selector_terms if demanded is not None else ():
        for field in term.match_fields:
            if field.key == NAME_FIELD and field.operator == "In" and len(field.values) == 1:
                return field.values[0]
    return ""
