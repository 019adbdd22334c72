"""Tracks the pod rules in use, and brings new ones into use before the object that requires them is admitted (ADR 15).

A rule is required, pending, or recently released. A released rule stays for a while because another replica may be
admitting an object that cannot be seen yet: otherwise, each replica would remove what the other has just added.

A dry run of an object that only a rule matches shows whether the apiserver uses it: the pod webhook of any replica
marks its answer, and the checks of pods refuse it. Of several apiservers, one answers the dry run; the others follow
within moments.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable

import msgspec
import structlog

from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.podrules import PodRule, is_probe
from flotilla_common.api.resources import POD_TEMPLATE
from flotilla_common.api.rulebounds import bounded, standing_for
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api
from flotilla_webhook.server.registration import RegistrationError
from flotilla_webhook.server.reviews import Handler

RULE_IN_USE = "kruise.io/pod-rule-in-use"
"""The mark of an answer to a probe: an annotation, or the text of the refusal of a check."""

LINGER_SECONDS = 10.0
"""Time for which a released rule stays.

An admitted object is seen within a second; the rest is for a slow apiserver.
"""

_EXPIRY_CHECK_SECONDS = 2.0

TIMEOUT_SECONDS = 5.0
"""Timeout of an admission. An apiserver applies a changed configuration within a tenth of a second."""

PROBED_NAMESPACE = "default"
"""Namespace of the dry run. It always exists, and the webhook's entry includes it."""

_FIRST_PAUSE_SECONDS, _LAST_PAUSE_SECONDS = 0.02, 0.1
_log = structlog.get_logger()

RulesOf = Callable[[Json, str], Awaitable[Collection[PodRule]]]
"""Returns the rules that an object requires, from the document and its namespace. Raises ValueError if unreadable."""


class ActiveRules:
    """The rules of this replica."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[PodRule, float] = {}  # when rules expire that no known object requires
        self._active: frozenset[PodRule] = frozenset()

    def expect(self, rules: Iterable[PodRule]) -> None:
        """Add rules for an object that is about to be stored."""
        expected = frozenset(rules)
        self._until |= dict.fromkeys(expected, self._clock.monotonic() + LINGER_SECONDS)
        self._active = bounded(self._active | expected)

    def covering(self, rule: PodRule) -> PodRule:
        """Return the active or pending rule that covers this one: itself, or a wider one."""
        return standing_for(rule, self._active)

    def rules(self, needed: Collection[PodRule], stored: Collection[PodRule], *, known: bool) -> frozenset[PodRule]:
        """Return the active rules, given the stored ones. Until all objects are `known`, no rule is removed."""
        now, needed = self._clock.monotonic(), bounded(needed)
        for rule in set(stored) - needed:
            self._until.setdefault(rule, now + LINGER_SECONDS)
        staying = {rule for rule, end in self._until.items() if end > now or (not known and rule in stored)}
        self._until = {rule: end for rule, end in self._until.items() if rule in staying and rule not in needed}
        self._active = bounded(needed | staying)
        return self._active

    async def expire(self, notify: Callable[[], None]) -> None:
        """Call `notify` when a released rule expires, until cancelled."""
        while True:
            await self._clock.sleep(_EXPIRY_CHECK_SECONDS)
            if any(end <= self._clock.monotonic() for end in self._until.values()):
                notify()


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
        end, pause = self.clock.monotonic() + TIMEOUT_SECONDS, _FIRST_PAUSE_SECONDS
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
            if RULE_IN_USE in refusal.message:
                return True
            raise
        return RULE_IN_USE in member(msgspec.json.decode(body), "metadata", "annotations")


def is_about_probe(request: Request) -> bool:
    """Report whether the request is a probe for a rule in use."""
    name = text(member(request.object or {}, "metadata").get("name"))
    return request.resource.resource == "podtemplates" and request.dry_run and is_probe(name)
