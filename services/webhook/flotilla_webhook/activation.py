"""Delays the admission of an object that requires the pod webhook until the apiserver uses its rule (ADR 15).

A dry run of an object that only this rule matches shows it: the pod webhook of any replica marks its answer, and the
checks of pods refuse it. Of several apiservers, one answers the dry run; the others follow within moments.
"""

from collections.abc import Awaitable, Callable, Collection

import msgspec
import structlog

from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.documents import Json, member
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.podrules import PodRule
from flotilla_common.api.resources import POD_TEMPLATE
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api
from flotilla_webhook.active_rules import ActiveRules
from flotilla_webhook.pods import SEEN
from flotilla_webhook.registration import RegistrationError
from flotilla_webhook.wire import Handler

PATIENCE_SECONDS = 5.0
"""Timeout of an admission. An apiserver applies a changed configuration within a tenth of a second."""

PROBED_NAMESPACE = "default"
"""Namespace of the dry run. It always exists, and the webhook's entry includes it."""

_FIRST_PAUSE_SECONDS, _LAST_PAUSE_SECONDS = 0.02, 0.1
_log = structlog.get_logger()

RulesOf = Callable[[Json, str], Awaitable[Collection[PodRule]]]
"""Returns the rules that an object requires, from the document and its namespace. Raises ValueError if unreadable."""


class Activation(msgspec.Struct, frozen=True, kw_only=True):
    """Brings rules into use."""

    api: Api
    clock: Clock
    active_rules: ActiveRules
    register: Callable[[], Awaitable[object]]
    """Updates the webhook configuration to the required rules. Raises the reason when that fails."""

    def before(self, handler: Handler, rules_of: RulesOf, admitted: Callable[[Json], None]) -> Handler:
        """Wrap a handler: an object that it allows is passed to `admitted`, and its rules are in use before the answer.

        A dry run changes nothing.
        """

        async def answer(request: Request) -> Answer:
            answer = await handler(request)
            if request.object is None or request.dry_run or not answer.allowed:
                return answer
            rules = set(await rules_of(request.object, request.namespace))
            if request.operation == "UPDATE" and request.old_object is not None:
                rules -= set(await rules_of(request.old_object, request.namespace))
            admitted(request.object)
            if await self.activate(rules):
                return answer
            warning = "for some seconds the apiserver may not call the webhook for new pods that this concerns"
            return msgspec.structs.replace(answer, warnings=[*answer.warnings, warning])

        return answer

    async def activate(self, rules: Collection[PodRule]) -> bool:
        """Bring the rules into use; return whether the apiserver uses all of them in time."""
        waiting = set(rules)
        self.active_rules.expect(waiting)
        end, pause = self.clock.monotonic() + PATIENCE_SECONDS, _FIRST_PAUSE_SECONDS
        why = ""
        while waiting and self.clock.monotonic() < end:
            try:
                waiting = await self._unused(waiting)
                if not waiting:
                    return True
                await self.register()
            except (ApiError, Unreachable, RegistrationError) as failure:  # or another replica wrote it first
                why = str(failure)
            await self.clock.sleep(pause)
            pause = min(2 * pause, _LAST_PAUSE_SECONDS)
        if waiting:
            _log.warning("the pod webhook is not in use yet", rules=sorted({rule.why for rule in waiting}), why=why)
        return not waiting

    async def _unused(self, rules: Collection[PodRule]) -> set[PodRule]:
        """Return the rules without an active rule in use. A rule that covers several is probed once."""
        by_active: dict[PodRule, set[PodRule]] = {}
        for rule in rules:
            by_active.setdefault(self.active_rules.covering(rule), set()).add(rule)
        used = {active for active in by_active if await self._is_used(active)}
        return {rule for active, covered in by_active.items() if active not in used for rule in covered}

    async def _is_used(self, rule: PodRule) -> bool:
        template: Json = {
            **POD_TEMPLATE.type_meta,
            "metadata": {"name": rule.probe, "namespace": PROBED_NAMESPACE},
            "template": {"spec": {"containers": [{"name": "probe", "image": "probe"}]}},
        }
        try:
            body = await self.api.create(POD_TEMPLATE, PROBED_NAMESPACE, msgspec.json.encode(template), dry_run=True)
        except ApiError as refusal:
            if SEEN in refusal.message:
                return True
            raise
        return SEEN in member(msgspec.json.decode(body), "metadata", "annotations")
