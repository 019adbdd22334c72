"""What the scheduler asks of a node for a pod: that it is one of those that the pod demands, that the pod tolerates its
taints, and that it would have room if nothing else were there.

On raw pod specs and nodes: the oracles judge by it, and must not do so by the planner's own reading.
"""

from collections.abc import Iterable, Sequence

from flotilla_common.api import quantity
from flotilla_common.api.documents import mapping, mappings, member
from flotilla_common.control.plan import Json

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
HARD = ("NoSchedule", "NoExecute")

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def selects(spec: Json, node: Json) -> bool:
    """The pod's node selector and required affinity let it run on the node."""
    labels = mapping(node["metadata"].get("labels"))
    if not mapping(spec.get("nodeSelector")).items() <= labels.items():
        return False
    required = member(spec, "affinity", "nodeAffinity", _REQUIRED)
    fields = {"metadata.name": node["metadata"]["name"]}
    terms = mappings(required.get("nodeSelectorTerms"))
    return not required or any(_holds(term, labels, fields) for term in terms)


def repelled_by(spec: Json, node: Json, effects: Sequence[str] = HARD) -> list[Json]:
    """The node's taints that keep the pod away; that it is cordoned counts as one, even before somebody says so."""
    taints = list(mappings(node["spec"].get("taints")))
    if node["spec"].get("unschedulable"):
        taints.append({"key": UNSCHEDULABLE, "effect": "NoSchedule"})
    tolerations = list(mappings(spec.get("tolerations")))
    hard = [taint for taint in taints if taint["effect"] in effects]
    return [taint for taint in hard if not any(_tolerates(one, taint) for one in tolerations)]


def lacks(spec: Json, node: Json) -> str:
    """A resource of which even the empty node has too little for the pod; empty for none. What init containers ask for
    is not counted: no scenario has such."""
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
