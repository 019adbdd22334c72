"""Admission of pods (webhooks.md §7): a chain of steps, each working on the result of the one before.

A step is a value: which pods it has to see now, and how it changes one. `app.py` lists the steps in the order of §7.
The webhook entries in the path of pods are made of their rules, and stand only while one of them has any (ADR 15).
"""

from collections.abc import Awaitable, Callable, Collection, Sequence

import msgspec

from flotilla_common.api.admission.review import ALLOWED, Answer, Operation, Request, error, operations, patched
from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.podrules import PodRule, decoded, encoded, is_probe, pod_entries
from flotilla_common.api.webhooks import POD_PATH
from flotilla_webhook.standing import Standing
from flotilla_webhook.wire import Handler

SEEN = "kruise.io/pod-rule-in-use"
"""The mark of an answer to a probe: an annotation, or the text of the refusal of a check."""


class Step(msgspec.Struct, frozen=True):
    """One step of the chain."""

    name: str
    rules: Callable[[], Awaitable[Collection[PodRule]]]
    """The pods that it has to see now, by what needs it."""
    change: Callable[[Json, Request], Awaitable[None]]
    """Change the pod in place. What it raises ends the request."""
    known: Callable[[], bool] = lambda: True
    """Whether its rules are all that there are: not before what they depend on has been listed."""


class PodAdmission:
    """The handler of the pod webhook, and the entries that call it."""

    def __init__(self, steps: Sequence[Step], standing: Standing) -> None:
        self.steps = steps
        self.standing = standing

    def handlers(self) -> dict[str, Handler]:
        """By path."""
        return {POD_PATH: self.mutate}

    async def entries(self, stored: str) -> tuple[list[Json], str]:
        """The entries as they must be now, without caBundle, and their rules for the annotation that holds those that
        are `stored`."""
        needed = {rule for step in self.steps for rule in await step.rules()}
        known = all(step.known() for step in self.steps)
        rules = self.standing.rules(needed, decoded(stored), known=known)
        return pod_entries(rules), encoded(rules) if rules else ""

    async def mutate(self, request: Request) -> Answer:
        """All changes as one patch. It touches nothing that no step changed, above all no namespace."""
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
    """Return whether the request only shows that a rule is in use."""
    name = text(member(request.object or {}, "metadata").get("name"))
    return request.resource.resource == "podtemplates" and request.dry_run and is_probe(name)
