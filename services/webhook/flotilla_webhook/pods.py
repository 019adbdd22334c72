"""Admission of pods (webhooks.md §7): so far only step 1, the KruisePodReady readiness gate.

The CloneSet controller writes the gate into the pods that it creates, so only the gate KruisePodReadinessGate, which
asks for it on every pod, puts this webhook into the path of pods.
"""

from flotilla_common.api.admission.patch import Operation
from flotilla_common.api.admission.review import ALLOWED, Answer, Request, error, patched
from flotilla_common.api.documents import mapping, mappings
from flotilla_common.gates import Gates
from flotilla_webhook.wire import Handler

READY = "KruisePodReady"


class PodAdmission:
    """The handler of /mutate-pod, which is there only while some rule needs it."""

    def __init__(self, gates: Gates) -> None:
        self.gates = gates

    def handlers(self) -> dict[str, Handler]:
        """By path; empty while no rule is armed."""
        return {"/mutate-pod": self.mutate} if self.gates.on("KruisePodReadinessGate") else {}

    async def mutate(self, request: Request) -> Answer:
        """Append the readiness gate unless the pod has it. The patch touches nothing else, above all no namespace."""
        if request.operation != "CREATE" or request.sub_resource:
            return ALLOWED
        pod = request.object
        if pod is None or not isinstance(pod.get("spec"), dict):
            return error(400, "the request has no pod")
        gates = mapping(pod["spec"]).get("readinessGates")
        if any(gate.get("conditionType") == READY for gate in mappings(gates)):
            return ALLOWED
        entry = {"conditionType": READY}
        if gates is None:
            return patched([Operation("add", "/spec/readinessGates", [entry])])
        return patched([Operation("add", "/spec/readinessGates/-", entry)])
