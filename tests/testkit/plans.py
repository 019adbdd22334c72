"""Reads what a plan says and does."""

from flotilla_common.control.plan import Plan
from tests.testkit.documents import Json


def codes(plan: Plan) -> set[str]:
    """Return the codes of the plan's reasons."""
    return {reason.code for reason in plan.reasons}


def code_list(plan: Plan) -> list[str]:
    """Return the codes of the plan's reasons, in order."""
    return [reason.code for reason in plan.reasons]


def reason(plan: Plan, code: str) -> str:
    """Return state and message of the reason with this code."""
    return next(f"{one.state}: {one.message}" for one in plan.reasons if one.code == code)


def node_of(body: Json) -> str:
    """Return the node that a pod's affinity demands, as controllers of nodes write it."""
    required = body["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    ((field,),) = [term["matchFields"] for term in required["nodeSelectorTerms"]]
    (name,) = field["values"]
    return name
