"""The scheduler's filters: node selector and affinity, taints, and room on an empty node.

They work on raw pod specs and nodes: the oracles use them, and must not use the planner's own code.
"""

from collections.abc import Iterable, Sequence

from flotilla_common.api import quantity
from flotilla_common.api.documents import mapping, mappings, member
from flotilla_common.control.plan import Json

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
HARD = ("NoSchedule", "NoExecute")

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def selects(spec: Json, node: Json) -> bool:
    """Report whether node selector and required affinity of the pod match the node."""
    labels = mapping(node["metadata"].get("labels"))
    if not mapping(spec.get("nodeSelector")).items() <= labels.items():
        return False
    required = member(spec, "affinity", "nodeAffinity", _REQUIRED)
    fields = {"metadata.name": node["metadata"]["name"]}
    terms = mappings(required.get("nodeSelectorTerms"))
    return not required or any(_holds(term, labels, fields) for term in terms)


def repelled_by(spec: Json, node: Json, effects: Sequence[str] = HARD) -> list[Json]:
    """Return the node's taints that repel the pod. A cordon counts as a taint, even before it is one."""
    taints = list(mappings(node["spec"].get("taints")))
    if node["spec"].get("unschedulable"):
        taints.append({"key": UNSCHEDULABLE, "effect": "NoSchedule"})
    tolerations = list(mappings(spec.get("tolerations")))
    hard = [taint for taint in taints if taint["effect"] in effects]
    return [taint for taint in hard if not any(_tolerates(one, taint) for one in tolerations)]


def lacks(spec: Json, node: Json) -> str:
    """Return a resource that even the empty node lacks for the pod; empty for none.

    Init containers are not counted: no scenario has one with requests.
    """
    room = member(node, "status", "allocatable")
    asked = [mapping(member(one, "resources").get("requests")) for one in mappings(spec.get("containers"))]
    for name in sorted({name for requests in asked for name in requests}):
        if sum(quantity.parse(str(requests.get(name, 0))) for requests in asked) > quantity.parse(
            str(room.get(name, 0))
        ):
            return name
    return "" if int(room.get("pods", 0)) else "pods"


def _holds(term: Json, labels: Json, fields: Json) -> bool:
    wanted = [*_pairs(term, "matchExpressions", labels), *_pairs(term, "matchFields", fields)]
    return bool(wanted) and all(_meets(one, values) for one, values in wanted)


def _pairs(term: Json, name: str, values: Json) -> Iterable[tuple[Json, Json]]:
    return ((requirement, values) for requirement in mappings(term.get(name)))


def _meets(requirement: Json, values: Json) -> bool:
    """Numbers are not compared: no scenario does."""
    key, listed = requirement["key"], requirement.get("values", ())
    among: bool = values.get(key) in listed
    return {"In": among, "NotIn": not among, "Exists": key in values, "DoesNotExist": key not in values}[
        requirement["operator"]
    ]


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return toleration.get("key") == taint.get("key") and toleration.get("value", "") == taint.get("value", "")
