"""Admission of pods (webhooks.md §7): a chain of steps, each working on the result of the one before.

A step is a value: the rules of the pods that it has to see now, and a function that changes one. `chain.py` lists the
steps in the order of §7. The webhook entries in the path of pods are built from their rules, and exist only while there
are any (ADR 15).
"""

from collections.abc import Awaitable, Callable, Collection, Sequence

import msgspec

from flotilla_common.api.admission.review import ALLOWED, Answer, Operation, Request, error, operations, patched
from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.podrules import PodRule, decoded, encoded, is_probe, pod_entries
from flotilla_common.api.webhooks import POD_PATH
from flotilla_webhook.active_rules import ActiveRules
from flotilla_webhook.wire import Handler

SEEN = "kruise.io/pod-rule-in-use"
"""The mark of an answer to a probe: an annotation, or the text of the refusal of a check."""


class AdmissionStep(msgspec.Struct, frozen=True):
    """One step of the chain."""

    name: str
    rules: Callable[[], Awaitable[Collection[PodRule]]]
    """Returns the rules of the pods that it has to see now."""
    change: Callable[[Json, Request], Awaitable[None]]
    """Changes the pod in place. An exception ends the request."""
    known: Callable[[], bool] = lambda: True
    """Reports whether its rules are complete, which needs a LIST of the objects behind them."""


class PodAdmission:
    """The handler of the pod webhook, and the entries that call it."""

    def __init__(self, steps: Sequence[AdmissionStep], active_rules: ActiveRules) -> None:
        self.steps = steps
        self.active_rules = active_rules

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers by path."""
        return {POD_PATH: self.mutate}

    async def entries(self, stored: str) -> tuple[list[Json], str]:
        """Return the required entries, without caBundle, and their rules for the annotation, given `stored` rules."""
        needed = {rule for step in self.steps for rule in await step.rules()}
        known = all(step.known() for step in self.steps)
        rules = self.active_rules.rules(needed, decoded(stored), known=known)
        return pod_entries(rules), encoded(rules) if rules else ""

    async def mutate(self, request: Request) -> Answer:
        """Return the changes of all steps as one patch. It touches nothing else, above all no namespace."""
        if request.operation != "CREATE" or request.sub_resource:
            return ALLOWED
        if is_about_probe(request):
            return patched([Operation("add", "/metadata/annotations", {SEEN: "true"})])
        if request.object is None or not isinstance(request.object.get("spec"), dict):
            return error(400, "the request has no pod")
        pod = msgspec.json.decode(msgspec.json.encode(request.object))  # a tenth of the time of a deep copy
        try:
            for step in self.steps:
                await step.change(pod, request)
        except (ApiError, Unreachable, ValueError) as fault:
            return error(500, str(fault))
        return patched(operations(request.object, pod))


def is_about_probe(request: Request) -> bool:
    """Report whether the request is a probe for a rule in use."""
    name = text(member(request.object or {}, "metadata").get("name"))
    return request.resource.resource == "podtemplates" and request.dry_run and is_probe(name)
