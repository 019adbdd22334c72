"""The difference of two versions of a page.

Blocks are matched by kind and id, or by being equal. Of tables it has the rows that are new or changed, and the order
if that changed; of groups the difference of their blocks; other blocks are replaced. `web/static/difference.js` applies
it in the browser.
"""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from flotilla_console.blocks.types import AnyBlock, Form, Graph, Group, Heading, Lanes, Link, Row, Spans, Table
from flotilla_console.page import Page


class Kept(msgspec.Struct, frozen=True):
    """A block that stays as it was."""

    was: int
    """Its position in the version before."""


class Replaced(msgspec.Struct, frozen=True):
    """A block that is new or changed."""

    block: AnyBlock


class TableChanged(msgspec.Struct, frozen=True, omit_defaults=True):
    """A table of which some rows are new, changed or gone."""

    was: int
    table: Table
    """The table without its rows."""
    rows: tuple[Row, ...] = ()
    """The rows that are new or changed."""
    order: tuple[str, ...] | None = None
    """The keys of all rows in order; None: as before."""


class GroupChanged(msgspec.Struct, frozen=True):
    """A group of which some blocks changed."""

    was: int
    summary: Spans
    blocks: "tuple[Change, ...]"


Change: TypeAlias = Kept | Replaced | TableChanged | GroupChanged


class Difference(msgspec.Struct, frozen=True):
    """All that changed from one version of a page to the next."""

    title: str
    trail: tuple[Link, ...]
    blocks: tuple[Change, ...]


def difference(old: Page, new: Page) -> Difference:
    """Return the difference of two versions of a page."""
    return Difference(new.title, new.trail, _changes(old.blocks, new.blocks))


def _changes(old: Sequence[AnyBlock], new: Sequence[AnyBlock]) -> tuple[Change, ...]:
    places = {_identity(block): place for place, block in reversed([*enumerate(old)])}
    return tuple(_change(block, old, places.get(_identity(block))) for block in new)


def _identity(block: AnyBlock) -> object:
    """Return a value that a block keeps while it is the same block."""
    if isinstance(block, Form | Graph | Group | Heading | Lanes | Table) and block.id:
        return type(block), block.id
    return block


def _change(new: AnyBlock, old: Sequence[AnyBlock], place: int | None) -> Change:
    if place is None:
        return Replaced(new)
    before = old[place]
    if before == new:
        return Kept(place)
    if isinstance(before, Table) and isinstance(new, Table):
        return _table(place, before, new)
    if isinstance(before, Group) and isinstance(new, Group) and before.open == new.open:
        return GroupChanged(place, new.summary, _changes(before.blocks, new.blocks))
    return Replaced(new)


def _table(place: int, old: Table, new: Table) -> Change:
    before = {row.key: row for row in old.rows}
    order = tuple(row.key for row in new.rows)
    if len(set(order)) < len(order) or len(before) < len(old.rows):
        return Replaced(new)  # without unique keys rows cannot be matched
    rows = tuple(row for row in new.rows if before.get(row.key) != row)
    same_order = order == tuple(before)
    return TableChanged(place, msgspec.structs.replace(new, rows=()), rows, None if same_order else order)
