"""Admission of pods (webhooks.md §7): a chain of steps, each working on the result of the one before.

A step is a value: which pods it has to see now, and how it changes one. `app.py` lists the steps in the order of §7.
The webhook entry in the path of pods is made of their rules, and stands only while one of them has any (ADR 15).
"""

import copy
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from flotilla_common.api.admission.patch import Operation, operations
from flotilla_common.api.admission.review import ALLOWED, Answer, Request, error, patched
from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.webhooks import POD_PATH, PROBE, PodRule, pod_entry
from flotilla_webhook.wire import Handler

SEEN = "kruise.io/pod-rule-in-use"
"""The annotation that the answer to a probe carries."""


class Step(msgspec.Struct, frozen=True):
    """One step of the chain."""

    name: str
    rule: Callable[[Json], Awaitable[PodRule | None]]
    """The pods that it has to see now, given the entry as it is stored ({} without one). None: none at all."""
    change: Callable[[Json, Request], Awaitable[None]]
    """Change the pod in place. What it raises ends the request."""


class PodAdmission:
    """The handler of the pod webhook, and the entry that calls it."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps

    def handlers(self) -> dict[str, Handler]:
        """By path."""
        return {POD_PATH: self.mutate}

    async def rules(self, stored: Json) -> list[PodRule]:
        """What the steps need to see now, given the entry as it is stored."""
        rules = [await step.rule(stored) for step in self.steps]
        return [rule for rule in rules if rule is not None]

    async def entry(self, stored: Json) -> Json | None:
        """The entry as it must be now, given the stored one; None while no step needs it."""
        rules = await self.rules(stored)
        return pod_entry(rules) if rules else None

    async def mutate(self, request: Request) -> Answer:
        """All changes as one patch. It touches nothing that no step changed, above all no namespace."""
        if request.operation != "CREATE" or request.sub_resource:
            return ALLOWED
        if is_probe(request):
            return patched([Operation("add", "/metadata/annotations", {SEEN: "true"})])
        if request.object is None or not isinstance(request.object.get("spec"), dict):
            return error(400, "the request has no pod")
        pod = copy.deepcopy(request.object)
        try:
            for step in self.steps:
                await step.change(pod, request)
        except (ApiError, Unreachable, ValueError) as fault:
            return error(500, str(fault))
        return patched(operations(request.object, pod))


def is_probe(request: Request) -> bool:
    """Somebody wants to see which rules are in use; nothing is stored of it."""
    name = text(member(request.object or {}, "metadata").get("name"))
    return request.resource.resource == "podtemplates" and request.dry_run and name.startswith(PROBE)
