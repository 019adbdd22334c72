"""The difference of two versions of a page, applied to the old one, is the new one."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flotilla_console.blocks.types import AnyBlock, Column, Group, Heading, Paragraph, Row, Table, spans
from flotilla_console.live.difference import Change, GroupChanged, Kept, Replaced, TableChanged, difference
from flotilla_console.page import Page
from tests.unit.console import scripts
from tests.unit.console.samples import every_block

TEXTS = st.sampled_from(["a", "b", "c"])
ROWS = st.lists(st.builds(lambda key, text: Row(key, (spans(text),)), st.sampled_from("stuvw"), TEXTS), max_size=6)
TABLES = st.builds(
    lambda id_, rows, total: Table(id_, "T", (Column("a", "A"),), tuple(rows), total), TEXTS, ROWS, st.integers(0, 3)
)
PLAIN = st.one_of(
    TABLES, st.builds(lambda text: Paragraph(spans(text)), TEXTS), st.builds(Heading, TEXTS, st.just(2), TEXTS)
)
GROUPS = st.builds(
    lambda id_, text, blocks, is_open: Group(id_, spans(text), tuple(blocks), is_open),
    TEXTS,
    TEXTS,
    st.lists(PLAIN, max_size=3),
    st.booleans(),
)
PAGES = st.builds(lambda title, blocks: Page(title, tuple(blocks)), TEXTS, st.lists(PLAIN | GROUPS, max_size=5))


def applied(old: tuple[AnyBlock, ...], changes: tuple[Change, ...]) -> tuple[AnyBlock, ...]:
    return tuple(_applied(old, change) for change in changes)


def _applied(old: tuple[AnyBlock, ...], change: Change) -> AnyBlock:
    if isinstance(change, Replaced):
        return change.block
    before = old[change.was]
    if isinstance(change, TableChanged):
        assert isinstance(before, Table)
        rows = {row.key: row for row in before.rows} | {row.key: row for row in change.rows}
        order = [row.key for row in before.rows] if change.order is None else change.order
        return msgspec.structs.replace(change.table, rows=tuple(rows[key] for key in order))
    if isinstance(change, GroupChanged):
        assert isinstance(before, Group)
        blocks = applied(before.blocks, change.blocks)
        return msgspec.structs.replace(before, summary=change.summary, blocks=blocks)
    return before


@settings(deadline=None, max_examples=300)
@given(PAGES, PAGES)
def test_the_difference_leads_from_the_old_page_to_the_new_one(old: Page, new: Page) -> None:
    found = difference(old, new)
    assert Page(found.title, applied(old.blocks, found.blocks), found.trail) == new


@settings(deadline=None, max_examples=3, derandomize=True)
@given(st.lists(st.tuples(PAGES, PAGES), min_size=20, max_size=100))
def test_scripts_apply_it_alike(pages: list[tuple[Page, Page]]) -> None:
    pages = [*pages, (Page("every", every_block("a")), Page("every", every_block("b")))]
    given_pages = [{"page": _json(old), "difference": _json(difference(old, new))} for old, new in pages]
    made = scripts.run(Path(__file__).parent / "apply.mjs", given_pages)
    assert [msgspec.convert(page, Page) for page in made] == [new for _, new in pages]


def _json(value: object) -> object:
    return json.loads(msgspec.json.encode(value))


def table(*rows: tuple[str, str], total: int = 0) -> Table:
    return Table("t", "T", (Column("a", "A"),), tuple(Row(key, (spans(text),)) for key, text in rows), total)


@pytest.mark.parametrize(
    ("old", "new", "rows", "order"),
    [
        ([("a", "1"), ("b", "1")], [("a", "1"), ("b", "2")], ["b"], None),
        ([("a", "1"), ("b", "1")], [("b", "1"), ("a", "1")], [], ("b", "a")),
        ([("a", "1"), ("b", "1")], [("b", "1")], [], ("b",)),
        ([("a", "1")], [("a", "1"), ("c", "1")], ["c"], ("a", "c")),
    ],
)
def test_of_a_table_only_changed_rows_are_sent(
    old: list[tuple[str, str]], new: list[tuple[str, str]], rows: list[str], order: tuple[str, ...] | None
) -> None:
    (change,) = difference(Page("p", (table(*old),)), Page("p", (table(*new),))).blocks
    assert isinstance(change, TableChanged)
    assert ([row.key for row in change.rows], change.order) == (rows, order)


def test_a_new_first_block_leaves_the_others_as_they_are() -> None:
    blocks = every_block("text")
    found = difference(Page("p", blocks), Page("p", (Paragraph(spans("new")), *blocks)))
    assert found.blocks[0] == Replaced(Paragraph(spans("new")))
    assert all(isinstance(change, Kept) for change in found.blocks[1:])


def test_rows_with_the_same_key_are_replaced_with_their_table() -> None:
    new = table(("a", "1"), ("a", "2"))
    assert difference(Page("p", (table(("a", "1")),)), Page("p", (new,))).blocks == (Replaced(new),)
