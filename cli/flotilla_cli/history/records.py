"""What the bus has kept about one object: wishes of users, decisions, writes."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from flotilla_cli.published import Act, Why

WEBHOOK = "webhook"
"""Its records are wishes: what somebody wrote, or was refused. Those of other services are writes."""


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
