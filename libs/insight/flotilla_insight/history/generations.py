"""Splits the published records of one object into generations, one for each change of its spec.

The records are changes by users, decisions, and writes. The webhook reports most changes, and creations that were
rejected. A generation with decisions and without such a report bypassed it: through the scale subresource, or before
the record begins. It is in the list all the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest

import msgspec

from flotilla_insight.published import Act, Why

WEBHOOK = "webhook"
"""The service whose records are changes by users, or rejected ones. Those of other services are writes."""

GenerationKey = tuple[str, int]
"""A generation of an object, by the object's uid."""


class Writer(msgspec.Struct, frozen=True, kw_only=True):
    """An owner of fields of the live object, as evidence of writes that the webhook does not see.

    The apiserver records no time for writes through the scale subresource.
    """

    manager: str
    operation: str
    subresource: str
    at: datetime | None


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """The times of a pod's steps, from its last version; None: has not happened."""

    created: datetime | None = None
    scheduled: datetime | None = None
    ready: datetime | None = None


class ObjectRecords(msgspec.Struct, frozen=True, kw_only=True):
    """All records, each kind in time order.

    `begins`: the time since which nothing is missing; `pods` by name. `uses`: requests about other objects that this
    object decided, and writes of it by other controllers.
    """

    kind: str
    namespace: str
    name: str
    begins: datetime | None = None
    user_writes: tuple[Act, ...] = ()
    decisions: tuple[Why, ...] = ()
    writes: tuple[Act, ...] = ()
    uses: tuple[Act, ...] = ()
    pods: Mapping[str, Pod] = {}
    writers: tuple[Writer, ...] = ()


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """The time from one change of the spec to the next.

    `user_write` is None if its author is not known; `numbers` are those of the last decision before; `until` is None
    for the last generation.
    """

    began: datetime
    until: datetime | None
    generation: int
    user_write: Act | None
    user_writes: tuple[Act, ...]  # others that changed no spec, or were refused
    decisions: tuple[Why, ...]
    writes: tuple[Act, ...]
    uses: tuple[Act, ...] = ()
    numbers: dict[str, int] = {}


class _Start(msgspec.Struct, frozen=True):
    at: datetime
    key: GenerationKey  # of the decisions that belong to it; empty if nothing came of it
    user_write: Act | None


def generations(record: ObjectRecords) -> list[Generation]:
    """Return all generations in order; none if there is no record of the object."""
    starts = _starts(record)
    made: list[Generation] = []
    for start, following in zip_longest(starts, starts[1:]):
        end = following.at if following else None
        decisions = tuple(one for one in record.decisions if (one.uid, one.generation) == start.key)
        before = [one.numbers for one in record.decisions if one.at and one.at < start.at and one.numbers]
        made.append(
            Generation(
                began=start.at,
                until=end,
                generation=start.key[1],
                user_write=start.user_write,
                user_writes=tuple(
                    one
                    for one in record.user_writes
                    if _within(one, start.at, end) and not _same(one, start.user_write)
                ),
                decisions=decisions,
                writes=tuple(one for one in record.writes if _within(one, start.at, end)),
                uses=tuple(one for one in record.uses if _within(one, start.at, end)),
                numbers=before[-1] if before else {},
            )
        )
    return made


def _starts(record: ObjectRecords) -> list[_Start]:
    found: dict[GenerationKey, _Start] = {}
    for write in record.user_writes:
        key = (write.uid, write.generation)
        if not write.ok and write.action == "create":
            found[str(write.at), 0] = _Start(write.at, ("", 0), write)
        if write.ok and (write.action == "delete" or key not in found) and _changes_spec(write):
            found[(write.uid, -1) if write.action == "delete" else key] = _Start(write.at, key, write)
    for key, at in _decided(record.decisions):
        if key not in found:
            found[key] = _Start(at, key, None)
    return sorted(found.values(), key=lambda start: start.at)


def _decided(decisions: Sequence[Why]) -> Iterator[tuple[GenerationKey, datetime]]:
    for one in decisions:
        if one.at is not None and one.generation:  # before that there was no object
            yield (one.uid, one.generation), one.at


def _changes_spec(write: Act) -> bool:
    return write.action != "update" or any(str(change.get("path", "")).startswith("spec") for change in write.changes)


def _same(one: Act, write: Act | None) -> bool:
    """Report whether this is the user's write itself, or the apiserver's second call for it after a conflict."""
    if write is None or not one.ok:
        return one is write
    return (one.uid, one.generation, one.action, one.changes) == (
        write.uid,
        write.generation,
        write.action,
        write.changes,
    )


def _within(act: Act, began: datetime, until: datetime | None) -> bool:
    return began <= act.at and (until is None or act.at < until)


def is_user_write(act: Act) -> bool:
    """Report whether a record is about a user's write."""
    return act.service == WEBHOOK
