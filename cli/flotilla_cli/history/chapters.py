"""What the bus has kept about one object (wishes of users, decisions, writes), and how it is cut into chapters,
each from one change of the object's spec to the next.

The webhook tells of most changes, and of creations that were refused. A generation that is decided on, and of which it
told nothing, came past it: through the scale subresource, or before the record begins. It is a chapter all the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest

import msgspec

from flotilla_cli.published import Act, Why

WEBHOOK = "webhook"
"""Its records are wishes: what somebody wrote, or was refused. Those of other services are writes."""

Life = tuple[str, int]
"""A generation of an object, by the object's uid."""


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
    """All of it, each in the order of time. `begins`: since when nothing is missing; `pods` by name. `uses`: how others
    used the object: requests about other objects that were decided by it, and writes of it by other controllers."""

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


class Chapter(msgspec.Struct, frozen=True, kw_only=True):
    """What happened from one change of the spec to the next. `wish` is None where nobody knows who made it; `numbers`
    are those of the last decision before it, `until` is None for the last chapter."""

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
    life: Life  # of which decisions belong to it; none where nothing came of it
    wish: Act | None


def chapters(record: Record) -> list[Chapter]:
    """All of them, in order; none of an object of which nothing is known."""
    starts = _starts(record)
    made: list[Chapter] = []
    for start, following in zip_longest(starts, starts[1:]):
        end = following.at if following else None
        decisions = tuple(one for one in record.decisions if (one.uid, one.generation) == start.life)
        before = [one.numbers for one in record.decisions if one.at and one.at < start.at and one.numbers]
        made.append(
            Chapter(
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
        if one.at is not None and one.generation:  # without one there was no object yet
            yield (one.uid, one.generation), one.at


def _changes_spec(wish: Act) -> bool:
    return wish.action != "update" or any(str(change.get("path", "")).startswith("spec") for change in wish.changes)


def _same(one: Act, wish: Act | None) -> bool:
    """The wish itself, also where the apiserver asked a second time, since somebody else wrote meanwhile."""
    if wish is None or not one.ok:
        return one is wish
    return (one.uid, one.generation, one.action, one.changes) == (wish.uid, wish.generation, wish.action, wish.changes)


def _within(act: Act, began: datetime, until: datetime | None) -> bool:
    return began <= act.at and (until is None or act.at < until)


def is_wish(act: Act) -> bool:
    """Whether a record is about what a user wrote."""
    return act.service == WEBHOOK
