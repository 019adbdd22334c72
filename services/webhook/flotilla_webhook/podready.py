"""Step 1 of the pod webhook (webhooks.md §7): the KruisePodReady readiness gate.

Our controllers write it into the pods that they create, so only the gate KruisePodReadinessGate, which asks for it on
every pod, makes this step necessary.
"""

from flotilla_common.api.admission.review import Request
from flotilla_common.api.documents import Json, fill, mapping, mappings
from flotilla_common.api.keys import POD_READY
from flotilla_common.api.podrules import LACKS_READINESS_GATE, PodRule
from flotilla_common.gates import Gates
from flotilla_webhook.pods import Step


def readiness_step(gates: Gates) -> Step:
    """The step; idle without its gate."""
    on = gates.on("KruisePodReadinessGate")

    async def rules() -> list[PodRule]:
        return [LACKS_READINESS_GATE] if on else []

    async def change(pod: Json, request: Request) -> None:
        if on:
            _add_gate(mapping(pod["spec"]))

    return Step("readiness gate", rules, change)


def _add_gate(spec: Json) -> None:
    if not any(gate.get("conditionType") == POD_READY for gate in mappings(spec.get("readinessGates"))):
        fill(spec, readinessGates=[])
        spec["readinessGates"].append({"conditionType": POD_READY})
