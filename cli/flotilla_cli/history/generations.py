"""Splits the published records of one object into chapters, one for each change of its spec.

The records are changes by users, decisions, and writes. The webhook reports most changes, and creations that were
rejected. A generation with decisions and without such a report bypassed it: through the scale subresource, or before
the record begins. It is a chapter all the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest

import msgspec

from flotilla_cli.published import Act, Why

WEBHOOK = "webhook"
"""The service whose records are changes by users, or rejected ones. Those of other services are writes."""

Life = tuple[str, int]
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


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """All records, each kind in time order.

    `begins`: the time since which nothing is missing; `pods` by name. `uses`: requests about other objects that this
    object decided, and writes of it by other controllers.
    """

    kind: str
    namespace: str
    name: str
    begins: datetime | None = None
    wishes: tuple[Act, ...] = ()
    decisions: tuple[Why, ...] = ()
    writes: tuple[Act, ...] = ()
    uses: tuple[Act, ...] = ()
    pods: Mapping[str, Pod] = {}
    writers: tuple[Writer, ...] = ()


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """The time from one change of the spec to the next.

    `wish` is None if its author is not known; `numbers` are those of the last decision before it; `until` is None for
    the last chapter.
    """

    began: datetime
    until: datetime | None
    generation: int
    wish: Act | None
    wishes: tuple[Act, ...]  # others that changed no spec, or were refused
    decisions: tuple[Why, ...]
    writes: tuple[Act, ...]
    uses: tuple[Act, ...] = ()
    numbers: dict[str, int] = {}


class _Start(msgspec.Struct, frozen=True):
    at: datetime
    life: Life  # of which decisions belong to it; empty if nothing came of it
    wish: Act | None


def chapters(record: Record) -> list[Generation]:
    """Return all chapters in order; none if there is no record of the object."""
    starts = _starts(record)
    made: list[Generation] = []
    for start, following in zip_longest(starts, starts[1:]):
        end = following.at if following else None
        decisions = tuple(one for one in record.decisions if (one.uid, one.generation) == start.life)
        before = [one.numbers for one in record.decisions if one.at and one.at < start.at and one.numbers]
        made.append(
            Generation(
                began=start.at,
                until=end,
                generation=start.life[1],
                wish=start.wish,
                wishes=tuple(
                    one for one in record.wishes if _within(one, start.at, end) and not _same(one, start.wish)
                ),
                decisions=decisions,
                writes=tuple(one for one in record.writes if _within(one, start.at, end)),
                uses=tuple(one for one in record.uses if _within(one, start.at, end)),
                numbers=before[-1] if before else {},
            )
        )
    return made


def _starts(record: Record) -> list[_Start]:
    found: dict[Life, _Start] = {}
    for wish in record.wishes:
        life = (wish.uid, wish.generation)
        if not wish.ok and wish.action == "create":
            found[str(wish.at), 0] = _Start(wish.at, ("", 0), wish)
        if wish.ok and (wish.action == "delete" or life not in found) and _changes_spec(wish):
            found[(wish.uid, -1) if wish.action == "delete" else life] = _Start(wish.at, life, wish)
    for life, at in _decided(record.decisions):
        if life not in found:
            found[life] = _Start(at, life, None)
    return sorted(found.values(), key=lambda start: start.at)


def _decided(decisions: Sequence[Why]) -> Iterator[tuple[Life, datetime]]:
    for one in decisions:
        if one.at is not None and one.generation:  # before that there was no object
            yield (one.uid, one.generation), one.at


def _changes_spec(wish: Act) -> bool:
    return wish.action != "update" or any(str(change.get("path", "")).startswith("spec") for change in wish.changes)


def _same(one: Act, wish: Act | None) -> bool:
    """Report whether this is the wish itself, or the apiserver's second call for it after a conflict."""
    if wish is None or not one.ok:
        return one is wish
    return (one.uid, one.generation, one.action, one.changes) == (wish.uid, wish.generation, wish.action, wish.changes)


def _within(act: Act, began: datetime, until: datetime | None) -> bool:
    return began <= act.at and (until is None or act.at < until)


def is_wish(act: Act) -> bool:
    """Report whether a record is about a user's write."""
    return act.service == WEBHOOK
