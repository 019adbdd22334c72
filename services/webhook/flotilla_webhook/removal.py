"""What is done before a pod is deleted or evicted (webhooks.md §8): a chain of checks, each of which may refuse. What
one has written down for the removal is taken back where a later one refuses it.

The entries in the way of deletions are made of rules, as those in the way of creations are, and stand only while some
object needs them. Nobody waits for them: a deletion that passes them by is found out by the controllers.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence

import msgspec
import structlog

from flotilla_common.api.admission.review import ALLOWED, Answer, Request, error
from flotilla_common.api.documents import Json, mapping, member, text
from flotilla_common.api.errors import ApiError, Unreachable, found_or_none
from flotilla_common.api.podrules import REMOVAL_PATH, PodRule, decoded, encoded, removal_entries
from flotilla_common.api.resources import POD
from flotilla_common.kube.interface import Api
from flotilla_webhook.standing import Standing
from flotilla_webhook.wire import Handler

_log = structlog.get_logger()


class Verdict(msgspec.Struct, frozen=True):
    """What a check says about a removal."""

    answer: Answer = ALLOWED
    take_back: Callable[[], Awaitable[None]] | None = None
    """Undoes what was written down for it. Raises ApiError, Unreachable, ValueError."""


class Check(msgspec.Struct, frozen=True):
    """One check of the chain."""

    name: str
    rules: Callable[[], Awaitable[Collection[PodRule]]]
    """The pods whose removal it has to see now, by what needs it."""
    judge: Callable[[Json, str], Awaitable[Verdict]]
    """Whether the pod of a namespace may go."""
    known: Callable[[], bool] = lambda: True
    """Whether its rules are all that there are."""


class PodRemoval:
    """The handler of the webhook that is asked before pods go, and the entries that call it."""

    def __init__(self, api: Api, checks: Sequence[Check], standing: Standing) -> None:
        self._api = api
        self._checks = checks
        self.standing = standing

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers by path."""
        return {REMOVAL_PATH: self.validate}

    async def entries(self, stored: str) -> tuple[list[Json], str]:
        """Return the entries as they must be now, without caBundle, and their rules for the annotation that holds those
        that are `stored`."""
        needed = {rule for check in self._checks for rule in await check.rules()}
        known = all(check.known() for check in self._checks)
        rules = self.standing.rules(needed, decoded(stored), known=known)
        return removal_entries(rules), encoded(rules) if rules else ""

    async def validate(self, request: Request) -> Answer:
        """Ask the checks one after the other; the first that refuses ends it. A dry run changes nothing."""
        if _is_dry_run(request):
            return ALLOWED
        try:
            pod = await self._pod(request)
        except (ApiError, Unreachable) as failure:
            return error(400, f"cannot read the pod, the apiserver says: {failure}")
        return ALLOWED if pod is None else await self._judged(pod, request.namespace)

    async def _judged(self, pod: Json, namespace: str) -> Answer:
        written: list[Verdict] = []
        for check in self._checks:
            verdict = await check.judge(pod, namespace)
            if not verdict.answer.allowed:
                await _take_back(written)
                return verdict.answer
            written.append(verdict)
        return ALLOWED

    async def _pod(self, request: Request) -> Json | None:
        """Return the pod that is to go; None if the request is about none."""
        if request.operation == "DELETE" and not request.sub_resource:
            return request.old_object
        if request.operation != "CREATE" or request.sub_resource != "eviction":
            return None
        name = request.name or text(member(request.object or {}, "metadata").get("name"))
        body = await found_or_none(self._api.get(POD, request.namespace, name))
        return None if body is None else msgspec.json.decode(body, type=Json)


async def _take_back(written: Sequence[Verdict]) -> None:
    """Take back what was written for a pod that stays. What cannot be taken back ends by itself."""
    for verdict in reversed(written):
        try:
            if verdict.take_back is not None:
                await verdict.take_back()
        except (ApiError, Unreachable, ValueError) as failure:
            _log.warning("cannot take back what was written down for a removal", why=str(failure))


def _is_dry_run(request: Request) -> bool:
    """Return whether nothing would happen; an eviction says so in the options of its deletion."""
    options = mapping(mapping(request.object).get("deleteOptions"))
    return request.dry_run or options.get("dryRun") == ["All"]
