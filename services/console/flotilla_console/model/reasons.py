"""The last reasons of each object, as the services publish them on `why.v1`."""

from collections.abc import Callable
from datetime import datetime

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, Message
from flotilla_common.control.plan import Reason, State
from flotilla_insight.published import Failure

ReasonKey = tuple[str, str, str]
"""Plural, namespace and name."""

_SEVERITY = (State.STUCK, State.HELD, State.WAITING, State.PROGRESSING, State.DONE, State.NOTE)


class Reasons(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The part of the last plan for an object (`published.Why`) that the console keeps."""

    uid: str = ""
    generation: int = 0
    at: datetime | None = None
    service: str = ""
    replica: str = ""
    trace: str = ""
    reasons: tuple[Reason, ...] = ()
    numbers: dict[str, int] = {}
    wake_at: datetime | None = None
    errors: tuple[Failure, ...] = ()

    @property
    def by_severity(self) -> list[Reason]:
        """Return the reasons, the most severe first; causes come before the symptoms that they explain."""
        return sorted(self.reasons, key=lambda reason: (_SEVERITY.index(reason.state), reason.symptom))


_decode = msgspec.json.Decoder(Reasons).decode


class ReasonTable:
    """The last reasons by object. Messages of other releases, in another form, are left out."""

    def __init__(self, changed: Callable[[ReasonKey], None]) -> None:
        self._reasons: dict[ReasonKey, Reasons] = {}
        self._unconfirmed: set[ReasonKey] = set()
        """Reasons that a new read of the stream has not repeated yet. A wiped bus does not have them."""
        self._changed = changed

    async def follow(self, bus: Bus) -> None:
        """Follow the stream from its beginning."""
        await bus.follow(subjects.WHY_STREAM.name, (">",), self.take, self.reset)

    def reset(self) -> None:
        """Begin again: what the stream does not repeat is dropped when it has been read to its end."""
        self._unconfirmed = set(self._reasons)

    def take(self, message: Message) -> None:
        """Keep the reasons in a message; an empty one, or one that cannot be read, removes the earlier ones."""
        try:
            _, _, plural, namespace, name = message.subject.split(".")
        except ValueError:
            return
        key = plural, subjects.untoken(namespace), subjects.untoken(name)
        try:
            self._reasons[key] = _decode(message.data)
        except (msgspec.MsgspecError, RecursionError):
            self._reasons.pop(key, None)
        self._changed(key)
        self._unconfirmed.discard(key)
        if not message.pending:
            self._drop_unconfirmed()

    def _drop_unconfirmed(self) -> None:
        for key in self._unconfirmed:
            if self._reasons.pop(key, None) is not None:
                self._changed(key)
        self._unconfirmed.clear()

    def of(self, resource: Resource, namespace: str, name: str, uid: str) -> Reasons | None:
        """Return the last reasons of the object with this uid: an earlier object may have had the same name."""
        found = self._reasons.get((resource.plural, namespace, name)) if resource.custom else None
        return found if found is not None and found.uid == uid else None
