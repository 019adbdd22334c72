"""The record of a last plan, as it is published on why.v1."""

from collections.abc import Collection
from datetime import datetime

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus
from flotilla_common.control.plan import Reason


class Failure(msgspec.Struct, frozen=True):
    """A decision that was impossible."""

    phase: str = ""
    message: str = ""


class Why(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What a service decided about an object, when, from which state of it, and for which reasons."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    at: datetime | None = None
    service: str = ""
    replica: str = ""
    trace: str = ""
    reasons: tuple[Reason, ...] = ()
    numbers: dict[str, int] = {}
    actions: dict[str, int] = {}
    wake_at: datetime | None = None
    errors: tuple[Failure, ...] = ()

    @property
    def told(self) -> tuple[str, ...]:
        """What the object waits for and what was impossible, as sentences."""
        return self.told_besides(())

    def told_besides(self, codes: Collection[str]) -> tuple[str, ...]:
        """Likewise, without reasons of these codes."""
        reasons = (reason.sentence for reason in self.reasons if reason.code not in codes)
        return (*reasons, *(failure.message for failure in self.errors))


def decode_why(data: bytes) -> Why | None:
    """Read a payload; None for one that cannot be read: written by another release (reasons without a state), or by
    hand."""
    try:
        return msgspec.json.decode(data, type=Why)
    except msgspec.MsgspecError:
        return None


async def last_why(bus: Bus, resource: Resource, namespace: str, name: str) -> Why | None:
    """The last published record of an object; None if there is none. Raises BusError."""
    message = await bus.get_last(subjects.WHY_STREAM.name, subjects.why(resource, namespace, name))
    return None if message is None else decode_why(message.data)
