"""Admission of pods: steps on new pods (webhooks.md §7), checks before a pod is deleted, evicted or updated (§8).

Each step works on the result of the one before. Checks run one after the other, and each may refuse; records of earlier
checks for the request are undone when a later one refuses it. Steps and checks are values, which `chain.py` lists in
order: the rules of the pods that they have to see now, and a function. The webhook entries in the path of pods are
built from these rules, and exist only while some object requires them (ADR 15).
"""

from collections.abc import Awaitable, Callable, Collection, Sequence

import msgspec
import structlog

from flotilla_common.api.admission.review import ALLOWED, Answer, Operation, Request, denied, error, operations, patched
from flotilla_common.api.documents import Json, mapping, member, text
from flotilla_common.api.errors import ApiError, Unreachable, found_or_none
from flotilla_common.api.podrules import CHECK_PATH, PodRule, check_entries, decoded, encoded, pod_entries
from flotilla_common.api.resources import POD
from flotilla_common.api.webhooks import POD_PATH
from flotilla_common.kube.interface import Api
from flotilla_webhook.pods.activation import RULE_IN_USE, ActiveRules, is_about_probe
from flotilla_webhook.server.reviews import Handler

DELETE, EVICT, UPDATE = "DELETE", "EVICT", "UPDATE"

_log = structlog.get_logger()


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
        rules = await _active(self.active_rules, self.steps, stored)
        return pod_entries(rules), encoded(rules) if rules else ""

    async def mutate(self, request: Request) -> Answer:
        """Return the changes of all steps as one patch. It touches nothing else, above all no namespace."""
        if request.operation != "CREATE" or request.sub_resource:
            return ALLOWED
        if is_about_probe(request):
            return patched([Operation("add", "/metadata/annotations", {RULE_IN_USE: "true"})])
        if request.object is None or not isinstance(request.object.get("spec"), dict):
            return error(400, "the request has no pod")
        pod = msgspec.json.decode(msgspec.json.encode(request.object))  # a tenth of the time of a deep copy
        try:
            for step in self.steps:
                await step.change(pod, request)
        except (ApiError, Unreachable, ValueError) as fault:
            return error(500, str(fault))
        return patched(operations(request.object, pod))


class PodChange(msgspec.Struct, frozen=True):
    """A requested change of a pod."""

    operation: str  # DELETE, EVICT or UPDATE
    pod: Json  # as it is stored
    request: Request
    dry_run: bool = False

    @property
    def namespace(self) -> str:
        """Return the namespace of the pod."""
        return self.request.namespace


class CheckResult(msgspec.Struct, frozen=True):
    """The answer of a check to a change."""

    answer: Answer = ALLOWED
    take_back: Callable[[], Awaitable[None]] | None = None
    """Undoes the records for the change. Raises ApiError, Unreachable, ValueError."""


class Check(msgspec.Struct, frozen=True):
    """One check of the chain."""

    name: str
    rules: Callable[[], Awaitable[Collection[PodRule]]]
    """Returns the rules of the pods whose changes it has to see now."""
    decide: Callable[[PodChange], Awaitable[CheckResult]]
    """Decides whether the change may be made. A dry run leaves no record."""
    known: Callable[[], bool] = lambda: True
    """Reports whether its rules are complete."""


class PodChecks:
    """The handler of the webhook for pods that go or are updated, and the entries that call it."""

    def __init__(self, api: Api, checks: Sequence[Check], active_rules: ActiveRules) -> None:
        self._api = api
        self._checks = checks
        self.active_rules = active_rules

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers by path."""
        return {CHECK_PATH: self.validate}

    async def entries(self, stored: str) -> tuple[list[Json], str]:
        """Return the required entries, without caBundle, and their rules for the annotation, given `stored` rules."""
        rules = await _active(self.active_rules, self._checks, stored)
        return check_entries(rules), encoded(rules) if rules else ""

    async def validate(self, request: Request) -> Answer:
        """Run the checks one after the other until one refuses."""
        # A dry run that probes whether a rule is in use is refused: unlike a mutation, a check cannot leave another
        # mark.
        if is_about_probe(request):
            return denied(RULE_IN_USE)
        try:
            change = await self._change(request)
        except (ApiError, Unreachable) as failure:
            return error(400, f"cannot read the pod from the apiserver: {failure}")
        return ALLOWED if change is None else await self._run_checks(change)

    async def _run_checks(self, change: PodChange) -> Answer:
        written: list[CheckResult] = []
        for check in self._checks:
            verdict = await check.decide(change)
            if not verdict.answer.allowed:
                await _take_back(written)
                return verdict.answer
            written.append(verdict)
        return ALLOWED

    async def _change(self, request: Request) -> PodChange | None:
        """Return the requested change, or None if it concerns no pod."""
        if (request.operation, request.sub_resource) == ("CREATE", "eviction"):
            return await self._eviction(request)
        if request.operation not in (DELETE, UPDATE) or request.sub_resource or request.old_object is None:
            return None
        return PodChange(request.operation, request.old_object, request, request.dry_run)

    async def _eviction(self, request: Request) -> PodChange | None:
        eviction = request.object or {}
        name = request.name or text(member(eviction, "metadata").get("name"))
        body = await found_or_none(self._api.get(POD, request.namespace, name))
        if body is None:
            return None
        dry_run = request.dry_run or mapping(eviction.get("deleteOptions")).get("dryRun") == ["All"]
        return PodChange(EVICT, msgspec.json.decode(body, type=Json), request, dry_run)


async def _active(
    active_rules: ActiveRules, parts: Sequence[AdmissionStep] | Sequence[Check], stored: str
) -> frozenset[PodRule]:
    """Return the active rules of the steps or checks, given the stored ones of the annotation."""
    needed = {rule for part in parts for rule in await part.rules()}
    return active_rules.rules(needed, decoded(stored), known=all(part.known() for part in parts))


async def _take_back(written: Sequence[CheckResult]) -> None:
    """Undo records for a pod that stays as it is. Those that cannot be undone expire."""
    for verdict in reversed(written):
        try:
            if verdict.take_back is not None:
                await verdict.take_back()
        except (ApiError, Unreachable, ValueError) as failure:
            _log.warning("cannot undo the records for a pod", why=str(failure))
