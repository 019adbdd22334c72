"""What the bus has kept about one object: wishes of users, decisions, writes."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from flotilla_cli.tree.why import Why
from flotilla_common.api.documents import Json

WEBHOOK = "webhook"
"""Its records are wishes: what somebody wrote, or was refused. Those of other services are writes."""


class Owner(msgspec.Struct, frozen=True):
    """On whose behalf something is written."""

    kind: str = ""
    namespace: str = ""
    name: str = ""


class Act(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A record of act.v1. The last five members are those of a wish."""

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
    cause: str = ""
    outcome: str = ""
    message: str = ""
    latency_ms: float = 0
    uid: str = ""
    user: str = ""
    manager: str = ""
    generation: int = 0
    changes: tuple[Json, ...] = ()

    @property
    def ok(self) -> bool:
        """It came to be."""
        return self.outcome == "Ok"


class Writer(msgspec.Struct, frozen=True, kw_only=True):
    """Who owns fields of the live object: what is known of writes that the webhook does not see. The apiserver keeps no
    time for those that came by the scale subresource."""

    manager: str
    operation: str
    subresource: str
    at: datetime | None


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """What the last version of a pod tells of its steps; None for what has not happened."""

    created: datetime | None = None
    scheduled: datetime | None = None
    ready: datetime | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """All of it, each in the order of time. `begins`: since when nothing is missing; `pods` by name."""

    kind: str
    namespace: str
    name: str
    begins: datetime | None = None
    wishes: tuple[Act, ...] = ()
    decisions: tuple[Why, ...] = ()
    writes: tuple[Act, ...] = ()
    pods: Mapping[str, Pod] = {}
    writers: tuple[Writer, ...] = ()


def decode_act(data: bytes) -> Act | None:
    """Read a payload; None for one that cannot be read: written by another release, or by hand."""
    try:
        return msgspec.json.decode(data, type=Act)
    except msgspec.MsgspecError:
        return None
