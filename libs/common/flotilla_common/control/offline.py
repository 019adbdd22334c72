"""Planning away from the service: how `flotilla replay` plans a kind again from what was recorded.

A service offers one `Offline` per kind. It gathers from tables with the service's own code; only who feeds the tables
differs.
"""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Protocol, TypeVar

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.meta import Object
from flotilla_common.api.resources import Resource
from flotilla_common.control.controller import Gather, Key, Memory, Planner, Snapshot, failed_plan
from flotilla_common.control.plan import Plan
from flotilla_common.control.subject import Subject
from flotilla_common.mirror.table import Indexer, Table

T = TypeVar("T", bound=Object)
S = TypeVar("S", bound=Snapshot)


class Tables(Protocol):
    """Where a gatherer gets its tables: the mirror, or a recording."""

    def add(self, resource: Resource, kind: type[T], indexes: dict[str, Indexer[T]] | None = None) -> Table[T]: ...


class Planning(msgspec.Struct, frozen=True, kw_only=True):
    """What decides about plans besides objects: services say it in their heartbeats, bundles keep it."""

    gates: str = ""  # those that differ from the defaults, as `--feature-gates` reads them
    options: Json = {}  # the service's settings that change decisions, by their own names


class Decision(msgspec.Struct, frozen=True):
    """A plan, and the object that it is for as it then was."""

    subject: Subject
    plan: Plan


Bench = Callable[[Key, Memory, datetime], Decision | None]
"""Plans one object once, from what the tables hold now; None when it does not exist."""


class Offline(msgspec.Struct, frozen=True, kw_only=True):
    """How objects of one kind are planned without their service."""

    resource: Resource
    dependents: Collection[Resource]  # kinds of the object's namespace that it makes
    bench: Callable[[Tables, Planning], Bench]


def bench(gather: Gather[S], plan: Planner[S]) -> Bench:
    """A bench of the two parts that a controller is made of."""

    def decide(key: Key, memory: Memory, now: datetime) -> Decision | None:
        snapshot = gather(key, memory)
        if snapshot is None:
            return None
        try:
            return Decision(snapshot.subject, plan(snapshot, now))
        except Exception as error:  # noqa: BLE001 - as in the controller: the decision is that planning failed
            return Decision(snapshot.subject, failed_plan(error))

    return decide
