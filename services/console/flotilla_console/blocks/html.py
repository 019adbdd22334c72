"""Renders blocks to HTML, for the first paint and for browsers without scripts.

`web/static/blocks.js` renders the same markup in the browser: a unit test compares them for every kind of block.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import quote_plus

from flotilla_console.blocks.markup import Markup, element, join, local
from flotilla_console.blocks.pictures import graph, lanes
from flotilla_console.blocks.times import age, moment, stamp
from flotilla_console.blocks.types import (
    Age,
    AnyBlock,
    Badge,
    Bar,
    Column,
    Diff,
    DiffLine,
    Facts,
    Field,
    Form,
    Graph,
    Group,
    Heading,
    Lanes,
    Link,
    Mono,
    Notice,
    Paragraph,
    Preformatted,
    Row,
    Slider,
    Span,
    Spans,
    Table,
    Text,
    Tone,
)

SIGNS: Mapping[Tone, str] = {"ok": "✓", "busy": "↻", "warn": "!", "bad": "✕", "idle": "·"}
"""The sign of each judgement, because colour alone says nothing to many."""

CSRF_FIELD = "csrf"
"""The field of forms with the token that proves that the form is ours."""

_DIFF_TAGS = {"+": "ins", "-": "del", " ": "span"}


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The surroundings of blocks: the moment, the page's query, and the token for its forms."""

    now: float
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    csrf: str = ""

    def link(self, **changes: str) -> str:
        """Return a link to this page with a changed query; an empty value removes its parameter."""
        query = {name: value for name, value in {**self.query, **changes}.items() if value}
        return "?" + "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in query.items())


def blocks(of: Iterable[AnyBlock], frame: Frame) -> Markup:
    """Return the markup of blocks, one below the other."""
    return join(block(one, frame) for one in of)


def block(one: AnyBlock, frame: Frame) -> Markup:
    """Return the markup of a block."""
    return _BLOCKS[type(one)](one, frame)


def line(of: Spans, frame: Frame) -> Markup:
    """Return the markup of a line of text."""
    return join(_SPANS[type(one)](one, frame) for one in of)


def sign(tone: Tone) -> Markup:
    """Return the sign of a judgement; screen readers skip it."""
    return element("span", {"class": "sign", "aria-hidden": "true"}, SIGNS[tone])


def anchor(href: str, *children: str, **attributes: str | None) -> Markup:
    """Return a link, or its plain text if it leads to another server."""
    safe = local(href)
    return join(children) if safe is None else element("a", {"href": safe, **attributes}, *children)


# Pieces of a line


def _text(one: Text, _: Frame) -> Markup:
    return join([one.text])


def _link(one: Link, _: Frame) -> Markup:
    return anchor(one.href, one.text)


def _badge(one: Badge, _: Frame) -> Markup:
    return element("span", {"class": f"badge tone-{one.tone}"}, sign(one.tone), " ", one.text)


def _age(one: Age, frame: Frame) -> Markup:
    return element("time", {"datetime": stamp(one.at), "title": moment(one.at)}, age(one.at, frame.now))


def _mono(one: Mono, _: Frame) -> Markup:
    return element("code", None, one.text)


def _bar(one: Bar, _: Frame) -> Markup:
    whole, x, rects = max(one.total, 1), 0, list[Markup]()
    for part in one.parts:
        width = min(max(part.count, 0) * 1000 // whole, 1000 - x)
        rects.append(element("rect", {"class": f"fill-{part.tone}", "x": x, "y": 0, "width": width, "height": 8}))
        x += width
    picture = {"class": "bar-picture", "viewBox": "0 0 1000 8", "preserveAspectRatio": "none", "aria-hidden": "true"}
    return element("span", {"class": "bar"}, element("svg", picture, *rects), element("span", None, _bar_text(one)))


def _bar_text(one: Bar) -> str:
    """Return what the colours say. The label says how many are as they should be."""
    parts = [f"{part.count} {part.label}" for part in one.parts if not (one.label and part.tone == "ok")]
    return ", ".join([one.label, *parts]) if one.label else f"{', '.join(parts)} of {one.total}"


# Blocks


def _heading(one: Heading, _: Frame) -> Markup:
    return element(f"h{min(max(one.level, 2), 4)}", {"id": one.id or None}, one.text)


def _paragraph(one: Paragraph, frame: Frame) -> Markup:
    return element("p", None, line(one.spans, frame))


def _notice(one: Notice, frame: Frame) -> Markup:
    mark = [] if _begins_with_badge(one.spans) else [sign(one.tone), " "]
    return element("p", {"class": f"notice tone-{one.tone}"}, *mark, line(one.spans, frame))


def _begins_with_badge(spans: Spans) -> bool:
    """Report whether a line has a sign of its own at its beginning."""
    return bool(spans) and isinstance(spans[0], Badge)


def _facts(one: Facts, frame: Frame) -> Markup:
    rows = (
        element("div", None, element("dt", None, fact.label), element("dd", None, line(fact.spans, frame)))
        for fact in one.items
    )
    return element("dl", {"class": "facts"}, *rows)


def _table(one: Table, frame: Frame) -> Markup:
    caption = element("caption", {"id": f"{one.id}-caption"}, one.caption, " ", _window(one))
    head = element("tr", None, *(_column(column, one, frame) for column in one.columns))
    rows = [_row(row, one, frame) for row in one.rows] or [_empty(one)]
    table = element("table", {"id": one.id}, caption, element("thead", None, head), element("tbody", None, *rows))
    scroll = {"class": "scroll", "role": "region", "aria-labelledby": f"{one.id}-caption", "tabindex": 0}
    return element("div", {"class": "table"}, element("div", scroll, table), _paging(one, frame))


def _window(one: Table) -> Markup:
    first, last = one.offset + 1, one.offset + len(one.rows)
    text = str(one.total) if len(one.rows) == one.total else f"{first} to {last} of {one.total}"
    return element("span", {"class": "count"}, text)


def _column(column: Column, one: Table, frame: Frame) -> Markup:
    attributes = {"scope": "col", "class": "numeric" if column.numeric else None}
    if not column.sortable:
        return element("th", attributes, column.label)
    here = one.sort == column.id
    order = ("descending" if one.descending else "ascending") if here else "none"
    target = f"-{column.id}" if here and not one.descending else column.id
    arrow = element(
        "span", {"class": "sign", "aria-hidden": "true"}, {"ascending": "▲", "descending": "▼"}.get(order, "↕")
    )
    link = anchor(frame.link(sort=target, offset=""), column.label, " ", arrow)
    return element("th", {**attributes, "aria-sort": order}, link)


def _row(row: Row, one: Table, frame: Frame) -> Markup:
    cells: list[Markup] = []
    for number, cell in enumerate(row.cells):
        numeric = number < len(one.columns) and one.columns[number].numeric
        attributes = {"class": "numeric" if numeric else None}
        mark = [sign(row.tone), " "] if number == 0 and row.tone and not _begins_with_badge(cell) else []
        if number == 0:
            cells.append(element("th", {"scope": "row", **attributes}, *mark, line(cell, frame)))
        else:
            cells.append(element("td", attributes, line(cell, frame)))
    return element("tr", {"class": f"tone-{row.tone}" if row.tone else None}, *cells)


def _empty(one: Table) -> Markup:
    return element("tr", None, element("td", {"class": "empty", "colspan": max(len(one.columns), 1)}, "None"))


def _paging(one: Table, frame: Frame) -> Markup:
    links: list[Markup] = []
    if one.offset > 0:
        before = str(max(one.offset - one.limit, 0))
        links.append(anchor(frame.link(offset="" if before == "0" else before), "Previous", rel="prev"))
    if one.offset + len(one.rows) < one.total:
        links.append(anchor(frame.link(offset=str(one.offset + one.limit)), "Next", rel="next"))
    return element("nav", {"class": "paging", "aria-label": f"Pages of {one.caption}"}, *links) if links else Markup()


def _group(one: Group, frame: Frame) -> Markup:
    summary = element("summary", None, line(one.summary, frame))
    return element("details", {"id": one.id, "class": "group", "open": one.open}, summary, blocks(one.blocks, frame))


def _diff(one: Diff, _: Frame) -> Markup:
    lines = element("code", None, *map(_diff_line, one.lines))
    shown = element("pre", {"tabindex": 0, "role": "region", "aria-label": one.title}, lines)
    return element("figure", {"class": "diff"}, element("figcaption", None, one.title), shown)


def _diff_line(one: DiffLine) -> Markup:
    return element(_DIFF_TAGS[one.sign], None, f"{one.sign} {one.text}\n")


def _preformatted(one: Preformatted, _: Frame) -> Markup:
    # Browsers drop a line break directly after <pre>, but not after <code>.
    shown = element("pre", {"tabindex": 0, "role": "region", "aria-label": one.label}, element("code", None, one.text))
    return element("figure", {"class": "preformatted"}, element("figcaption", None, one.label), shown)


def _lanes(one: Lanes, _: Frame) -> Markup:
    return lanes(one)


def _graph(one: Graph, _: Frame) -> Markup:
    return graph(one)


# Forms


def _slider(one: Slider, frame: Frame) -> Markup:
    kept = {name: value for name, value in frame.query.items() if name != one.name}
    select = element("select", {"name": one.name}, *_options(one))
    return element(
        "form",
        {"class": "slider", "method": "get"},
        *(_hidden(name, value) for name, value in kept.items()),
        element("label", None, one.label, " ", select),
        element("button", {"type": "submit"}, "Show"),
    )


def _options(one: Slider | Field) -> Iterable[Markup]:
    choices = one.values if isinstance(one, Slider) else one.choices
    for choice in choices:
        yield element("option", {"value": choice.value, "selected": choice.value == one.value}, choice.label)


def _form(one: Form, frame: Frame) -> Markup:
    safe = local(one.action)
    if safe is None:
        return Markup()
    searches = any(one_field.kind == "search" for one_field in one.fields)
    attributes = {
        "id": one.id,
        "class": f"form tone-{one.tone}",
        "method": one.method,
        "action": safe,
        "role": "search" if searches else None,
    }
    token = [_hidden(CSRF_FIELD, frame.csrf)] if one.method == "post" else []
    button = element("button", {"type": "submit"}, one.submit)
    return element("form", attributes, *token, *(_field(one_field, one.id) for one_field in one.fields), button)


def _field(one: Field, form: str) -> Markup:
    if one.kind == "hidden":
        return _hidden(one.name, one.value)
    name = f"{form}-{one.name}"
    common = {
        "id": name,
        "name": one.name,
        "required": one.required,
        "aria-describedby": f"{name}-help" if one.help else None,
    }
    label = element("label", {"for": name}, one.label)
    note = element("small", {"id": f"{name}-help"}, one.help) if one.help else Markup()
    return element("div", {"class": f"field field-{one.kind}"}, label, _control(one, common), note)


def _control(one: Field, common: Mapping[str, str | bool | None]) -> Markup:
    match one.kind:
        case "select":
            return element("select", common, *_options(one))
        case "textarea":
            # Browsers drop a line break directly after <textarea>.
            return element("textarea", {**common, "rows": 8}, f"\n{one.value}")
        case "checkbox":
            return element("input", {**common, "type": "checkbox", "value": "true", "checked": one.value == "true"})
        case _:
            return element("input", {**common, "type": one.kind, "value": one.value})


def _hidden(name: str, value: str) -> Markup:
    return element("input", {"type": "hidden", "name": name, "value": value})


def _quoted(text: str) -> str:
    # As URLSearchParams of browsers quotes it.
    return quote_plus(text, safe="*", errors="replace").replace("~", "%7E")


_SPANS = cast(
    "Mapping[type[Span], Callable[[Span, Frame], Markup]]",
    {Text: _text, Link: _link, Badge: _badge, Age: _age, Mono: _mono, Bar: _bar},
)
_BLOCKS = cast(
    "Mapping[type[AnyBlock], Callable[[AnyBlock, Frame], Markup]]",
    {
        Heading: _heading,
        Paragraph: _paragraph,
        Notice: _notice,
        Facts: _facts,
        Table: _table,
        Group: _group,
        Diff: _diff,
        Preformatted: _preformatted,
        Lanes: _lanes,
        Slider: _slider,
        Graph: _graph,
        Form: _form,
    },
)
