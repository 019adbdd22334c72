"""Publishes changes of our kinds by users: the webhook sees each write before it is stored.

It never waits: the answer is not delayed, and does not depend on the bus. An admitted write may still fail (a conflict)
and be admitted again: the generation shows whether it was stored.
"""

from collections.abc import Mapping

import structlog

from flotilla_common.api.admission.review import Answer, Request, identity
from flotilla_common.api.changes import redacted_changes
from flotilla_common.api.documents import Json, mappings, member, text
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Kind
from flotilla_common.api.webhooks import paths
from flotilla_common.clock import Clock
from flotilla_common.control.journal import Admission, Journal
from flotilla_webhook.server.reviews import Handler

MESSAGE_LENGTH = 500
"""Length limit of a published refusal."""

_log = structlog.get_logger()

_HIDDEN = "refused; the text is not published, because objects of this kind hold secrets"


class Audit:
    """Publishes what users do to objects of our kinds."""

    def __init__(self, journal: Journal, clock: Clock, namespace: str) -> None:
        """Publish with the journal; `namespace` is Flotilla's own, with the accounts of its services."""
        self._journal = journal
        self._clock = clock
        self._own = f"system:serviceaccount:{namespace}:flotilla-"

    def around(self, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
        """Wrap the handlers of our kinds, by path, so that each admission and refusal is published."""
        found: dict[str, Handler] = {}
        for kind in catalogue.KINDS:
            verbs = list(kind.rules().admission.handlers)
            for verb in verbs:
                last = verb == verbs[-1]
                found |= {path: self._audited(kind, handlers[path], last=last) for path in paths(kind, verb)}
        return found

    def _audited(self, kind: Kind, handler: Handler, *, last: bool) -> Handler:
        """Wrap a handler. With `last`, no further handler can refuse what it admits."""

        async def answer(request: Request) -> Answer:
            began = self._clock.monotonic()
            answer = await handler(request)
            if not request.dry_run and not request.sub_resource and (last or not answer.allowed):
                try:
                    self._publish(kind, request, answer, self._clock.monotonic() - began)
                except Exception:  # noqa: BLE001 - a faulty record must not affect the answer
                    _log.exception("cannot publish a change", kind=kind.name, name=request.name)
            return answer

        return answer

    def _publish(self, kind: Kind, request: Request, answer: Answer, seconds: float) -> None:
        before, after = request.old_object or {}, request.object or {}
        reported = redacted_changes(before, after, values=not kind.confidential) if before and after else []
        if before and after and answer.allowed and not self._is_intent(kind, request, reported):
            return
        namespace, name = identity(after or before, request)
        self._journal.admitted(
            kind.resource,
            Admission(
                action=request.operation.lower(),
                namespace=namespace,
                name=name,
                uid=text(member(after or before, "metadata").get("uid")),
                generation=member(after, "metadata").get("generation") or 0,
                user=request.user_info.username,
                manager=manager_of(request),
                changes=reported,
                refusal="" if answer.allowed else _refusal(kind, answer),
                seconds=seconds,
            ),
        )

    def _is_intent(self, kind: Kind, request: Request, reported: list[Json]) -> bool:
        """Report whether the change is a user's intent. Our services keep labels and annotations all the time."""
        ours = kind.made_by_us or request.user_info.username.startswith(self._own)
        return any(not ours or change["path"].startswith(("spec", "and ")) for change in reported)


def manager_of(request: Request) -> str:
    """Return the field manager of the request, or of the newest entry of the object."""
    named = text((request.options or {}).get("fieldManager"))
    if named or request.object is None:
        return named
    entries = mappings(member(request.object, "metadata").get("managedFields"))
    newest = max(entries, key=lambda entry: text(entry.get("time")), default=Json())
    return text(newest.get("manager"))


def _refusal(kind: Kind, answer: Answer) -> str:
    return _HIDDEN if kind.confidential else answer.message[:MESSAGE_LENGTH]
