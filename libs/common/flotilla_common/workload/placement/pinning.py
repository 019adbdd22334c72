"""Pods that are made for one node: the scheduler binds them to it by their affinity (daemonset.md §4.7), and those of
daemons tolerate more than their template says."""

from typing import Any

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, mapping, mappings

_EVERYWHERE = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_ON_HOST_NETWORK = (("node.kubernetes.io/network-unavailable", "NoSchedule"),)

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


def with_daemon_tolerations(spec: Json) -> list[Json]:
    """The tolerations of the pod spec, and those of daemons behind them (daemonset.md §4.2), which run on nodes that
    others leave, and on those that nobody else may come to. One that is the same stands only once."""
    keys = _EVERYWHERE + (_ON_HOST_NETWORK if spec.get("hostNetwork") is True else ())
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in keys]
    present: list[Json] = [dict(one) for one in mappings(spec.get("tolerations"))]
    known = {_identity(one) for one in present}
    return present + [one for one in added if _identity(one) not in known]


def _identity(toleration: Json) -> tuple[Any, ...]:
    return tuple(toleration.get(key) or "" for key in ("key", "operator", "value", "effect"))
