"""Decides whether a node should get or keep a pod with certain demands, and why not (daemonset.md §4.2).

It also pins pods to a node: the scheduler binds them to it by their affinity (§4.7). Resources are not checked here,
and neither is `spec.unschedulable`: a cordoned node has a taint for it, which daemons tolerate.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.documents import Json, mapping, mappings, typed
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.meta import Model
from flotilla_common.api.numbers import integer
from flotilla_common.api.scheduling import Affinity, NodeRequirement, NodeSelector, NodeSelectorTerm, Taint, Toleration

_HARD = ("NoSchedule", "NoExecute")


class Fit(msgspec.Struct, frozen=True):
    """The fit of a template on a node."""

    should_run: bool  # a pod should be created there
    should_continue: bool  # an existing pod may stay
    why_not: str = ""  # why none is created, in the words of Kubernetes


FITS = Fit(should_run=True, should_continue=True)


class Demands(Model):
    """The part of a pod spec that selects nodes."""

    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []


class Placement:
    """The demands of pods, compiled."""

    def __init__(self, demands: Demands) -> None:
        self._node_name = demands.node_name
        self._labels = demands.node_selector.items()
        self._affinity = demands.affinity.required if demands.affinity is not None else None
        self._tolerations = demands.tolerations

    @classmethod
    def of_daemons(cls, template: bytes | msgspec.Raw) -> "Placement":
        """Return the placement of daemons from a pod template as JSON. Raises ValueError."""
        return _of_daemons(bytes(template))

    def fit(self, node: Node) -> Fit:
        """Return the fit of the template's pods on the node."""
        labels = node.metadata.labels
        if self._node_name and self._node_name != node.metadata.name:
            return _excluded(f"spec.nodeName is {self._node_name}")
        if not self._labels <= labels.items():
            return _excluded(f"does not match nodeSelector {_missing(self._labels - labels.items())}")
        if self._affinity is not None and not _selects(self._affinity, node.metadata.name, labels):
            return _excluded("does not match the required node affinity")
        return self._tolerated(node) if node.spec.taints else FITS

    def _tolerated(self, node: Node) -> Fit:
        hard = [taint for taint in node.spec.taints if taint.effect in _HARD and not self._tolerates(taint)]
        if not hard:
            return FITS
        told = ", ".join(str(taint) for taint in hard)
        stays = all(taint.effect != "NoExecute" for taint in hard)
        return Fit(should_run=False, should_continue=stays, why_not=f"has the untolerated taint {told}")

    def _tolerates(self, taint: Taint) -> bool:
        return any(toleration.tolerates(taint) for toleration in self._tolerations)


def daemon_demands(spec: Json) -> Demands:
    """Return the demands of daemons with this pod spec, which tolerate more. Raises ValueError if it is invalid."""
    try:
        own = typed(spec, Demands)
        tolerations = typed(with_daemon_tolerations(spec), list[Toleration])
        return msgspec.structs.replace(own, tolerations=tolerations)
    except msgspec.ValidationError as error:
        raise ValueError(f"spec.template.spec: {error}") from error


@lru_cache(maxsize=1024)
def _of_daemons(template: bytes) -> Placement:
    return Placement(daemon_demands(mapping(mapping(read_json(template, object)).get("spec"))))


def _excluded(why: str) -> Fit:
    return Fit(should_run=False, should_continue=False, why_not=why)


def _missing(pairs: set[tuple[str, str]]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(pairs))


def _selects(selector: NodeSelector, name: str, labels: Mapping[str, str]) -> bool:
    return any(holds(term, name, labels) for term in selector.node_selector_terms)


def holds(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    """Return whether a node with this name and these labels meets all that the term requires."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {NAME_FIELD: name}
    return all(_meets(one, labels) for one in term.match_expressions) and all(
        one.key in fields and _meets(one, fields) for one in term.match_fields
    )


def _meets(requirement: NodeRequirement, values: Mapping[str, str]) -> bool:
    """Return whether the values meet the requirement; False if the apiserver would refuse the requirement."""
    value = values.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
        case _:
            return False


def _compares(requirement: NodeRequirement, value: str | None) -> bool:
    """Compare as Kubernetes does: both must be 64-bit integers, and there must be one bound."""
    number, limit = integer(value or ""), integer("".join(requirement.values[:1]))
    if number is None or limit is None or len(requirement.values) != 1:
        return False
    return number > limit if requirement.operator == "Gt" else number < limit


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
    """Return the pod spec for this node alone: required node affinity is replaced, preferred is kept."""
    affinity = mapping(spec.get("affinity"))
    demanded = {"nodeSelectorTerms": [{"matchFields": [{"key": NAME_FIELD, "operator": "In", "values": [node]}]}]}
    nodes = {**mapping(affinity.get("nodeAffinity")), "requiredDuringSchedulingIgnoredDuringExecution": demanded}
    return {**spec, "affinity": {**affinity, "nodeAffinity": nodes}}


def node_of(pod: Pod) -> str:
    """Return the node that the pod is on or pinned to; empty if there is none."""
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
    """Return the tolerations of the pod spec, followed by those of daemons, without duplicates (daemonset.md §4.2).

    Daemons run on nodes that other pods leave, and on nodes that no other pod may go to.
    """
    keys = _EVERYWHERE + (_ON_HOST_NETWORK if spec.get("hostNetwork") is True else ())
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in keys]
    present: list[Json] = [dict(one) for one in mappings(spec.get("tolerations"))]
    known = {_identity(one) for one in present}
    return present + [one for one in added if _identity(one) not in known]


def _identity(toleration: Json) -> tuple[Any, ...]:
    return tuple(toleration.get(key) or "" for key in ("key", "operator", "value", "effect"))
