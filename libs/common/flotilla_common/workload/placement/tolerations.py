"""What pods of daemons tolerate beside what their template says (daemonset.md §4.2): they run on nodes that others
leave, and on those that nobody else may come to."""

from typing import Any

from flotilla_common.api.documents import Json, mappings

_EVERYWHERE = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_ON_HOST_NETWORK = (("node.kubernetes.io/network-unavailable", "NoSchedule"),)


def with_daemon_tolerations(spec: Json) -> list[Json]:
    """The tolerations of the pod spec, and those of daemons behind them. One that is the same stands only once."""
    keys = _EVERYWHERE + (_ON_HOST_NETWORK if spec.get("hostNetwork") is True else ())
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in keys]
    present: list[Json] = [dict(one) for one in mappings(spec.get("tolerations"))]
    known = {_identity(one) for one in present}
    return present + [one for one in added if _identity(one) not in known]


def _identity(toleration: Json) -> tuple[Any, ...]:
    return tuple(toleration.get(key) or "" for key in ("key", "operator", "value", "effect"))
