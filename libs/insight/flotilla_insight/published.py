"""Records that services publish: of each write on act.v1, of the last plan of an object on why.v1, and heartbeats."""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import TypeVar

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.heartbeat import HEARTBEAT_SECONDS, NODE_AGENT, Heartbeat
from flotilla_common.bus.interface import Bus, Follow, Message
from flotilla_common.bus.subjects import untoken
from flotilla_common.control.plan import Reason

Record = TypeVar("Record", "Act", "Why")

LISTEN_SECONDS = HEARTBEAT_SECONDS + 1.0
"""Seconds until each replica has sent a heartbeat; no stream keeps them."""

_decode_heartbeat = msgspec.json.Decoder(Heartbeat).decode


class Owner(msgspec.Struct, frozen=True):
    """The object on whose behalf something is written."""

    kind: str = ""
    namespace: str = ""
    name: str = ""


class Act(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A record of act.v1: a write of a service, or (with the last five fields) a change that a user made."""

    at: datetime
    service: str = ""
    replica: str = ""
    trace: str = ""
    action: str = ""
    subresource: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    owner: Owner = Owner()
    intent: str = ""  # one of `control.plan.Intent`; empty in records of earlier releases
    cause: str = ""
    revision: str = ""
    pods: tuple[str, ...] = ()
    outcome: str = ""
    message: str = ""
    latency_ms: float = 0
    resource_version: str = ""
    uid: str = ""
    user: str = ""
    manager: str = ""
    generation: int = 0
    changes: tuple[Json, ...] = ()

    @property
    def ok(self) -> bool:
        """Report whether the write took effect."""
        return self.outcome == "Ok"


class Failure(msgspec.Struct, frozen=True):
    """An error that prevented a decision of the plan."""

    phase: str = ""
    message: str = ""


class Why(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The last plan for an object: its time, the version that it is based on, its reasons and numbers."""

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
    def sentences(self) -> tuple[str, ...]:
        """Return what the object waits for and what was impossible, as sentences."""
        return self.sentences_except(())

    def sentences_except(self, codes: Collection[str]) -> tuple[str, ...]:
        """Return the same without reasons of these codes."""
        reasons = (reason.sentence for reason in self.reasons if reason.code not in codes)
        return (*reasons, *(failure.message for failure in self.errors))


def decoded(data: bytes, kind: type[Record]) -> Record | None:
    """Decode a payload, or return None: other releases may write it in another form (reasons without a state)."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return None


async def last_why(bus: Bus, resource: Resource, namespace: str, name: str) -> Why | None:
    """Return the last published record of an object, or None. Raises BusError."""
    message = await bus.get_last(subjects.WHY_STREAM.name, subjects.why(resource, namespace, name))
    return None if message is None else decoded(message.data, Why)


async def listen(bus: Bus, on_heartbeat: Callable[[Heartbeat], object], service: str = "*") -> Follow:
    """Pass on each heartbeat, with the sender of its subject: the bus lets no user publish on another's subject.

    Heartbeats of a release with another format are left out.
    """

    def take(message: Message) -> None:
        _, _, sender, replica = message.subject.split(".", 3)
        try:
            beat = _decode_heartbeat(message.data)
        except (msgspec.MsgspecError, RecursionError):
            return
        own = untoken(replica) if sender == NODE_AGENT else beat.replica
        on_heartbeat(msgspec.structs.replace(beat, service=sender, replica=own))

    return await bus.subscribe(f"heartbeat.v1.{service}.*", take)
