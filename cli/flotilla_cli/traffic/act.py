"""The record of a write, as it is published on act.v1."""

from datetime import datetime

import msgspec

from flotilla_common.api.documents import Json


class Owner(msgspec.Struct, frozen=True):
    """On whose behalf something is written."""

    kind: str = ""
    namespace: str = ""
    name: str = ""


class Act(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A record of act.v1: a write of a service, or with the last five members one that a user wished."""

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
        """It came to be."""
        return self.outcome == "Ok"


def decode_act(data: bytes) -> Act | None:
    """Read a payload; None for one that cannot be read: written by another release, or by hand."""
    try:
        return msgspec.json.decode(data, type=Act)
    except msgspec.MsgspecError:
        return None
