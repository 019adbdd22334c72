"""The blocks that pages consist of.

A page is a value: `html.py` renders it for the first paint and for browsers without scripts, `web/static/blocks.js` in
the browser. Each text in them may be hostile; only these two renderers make markup of it, and both escape everything.
"""

from typing import Literal, TypeAlias

import msgspec

Tone: TypeAlias = Literal["ok", "busy", "warn", "bad", "idle"]
"""A judgement. It is always shown with a word or a sign, never by colour alone."""


class Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a block."""


class Inline(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="is", tag=str.lower):
    """A piece of a line of text."""


class Text(Inline, frozen=True):
    """Plain text."""

    text: str


class Link(Inline, frozen=True):
    """A link to another page of the console; `href` comes from `paths.py`."""

    text: str
    href: str


class Badge(Inline, frozen=True):
    """A short word with a judgement."""

    text: str
    tone: Tone


class Age(Inline, frozen=True):
    """A moment in seconds since 1970, shown as the time since then (`5m`)."""

    at: float


class Mono(Inline, frozen=True):
    """An image, a revision, a uid: text in the font of code."""

    text: str


class Part(Value, frozen=True):
    """A share of a bar."""

    label: str
    count: int
    tone: Tone


class Bar(Inline, frozen=True):
    """Shares of a whole: ready, updating and missing pods of a workload."""

    label: str
    parts: tuple[Part, ...]
    total: int


Span: TypeAlias = Text | Link | Badge | Age | Mono | Bar
Spans: TypeAlias = tuple[Span, ...]


class Block(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="block", tag=str.lower):
    """A part of a page, below the one before it."""


class Heading(Block, frozen=True):
    """A heading; `level` 2 to 4."""

    text: str
    level: int = 2
    id: str = ""


class Paragraph(Block, frozen=True):
    """A paragraph of text."""

    spans: Spans


class Notice(Block, frozen=True):
    """A message that stands out."""

    tone: Tone
    spans: Spans


class Fact(Value, frozen=True):
    """A label and its value."""

    label: str
    spans: Spans


class Facts(Block, frozen=True):
    """Labels and values, one below the other."""

    items: tuple[Fact, ...]


class Column(Value, frozen=True):
    """A column of a table."""

    id: str
    label: str
    numeric: bool = False
    sortable: bool = False


class Row(Value, frozen=True):
    """A row of a table; `key` is unique in the table and stays the same while the row's object exists."""

    key: str
    cells: tuple[Spans, ...]
    tone: Tone | None = None


class Table(Block, frozen=True):
    """A window of a sorted table: `rows` are the rows from `offset` on, at most `limit`, of `total`.

    Sorting and paging are query parameters of the page: `sort` (`<column>` or `-<column>`) and `offset`.
    """

    id: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    total: int
    offset: int = 0
    limit: int = 100
    sort: str = ""
    descending: bool = False


class DiffLine(Value, frozen=True):
    """A line of a comparison."""

    sign: Literal["+", "-", " "]
    text: str


class Diff(Block, frozen=True):
    """A comparison of two texts."""

    title: str
    lines: tuple[DiffLine, ...]


class Preformatted(Block, frozen=True):
    """Lines of a log or of YAML."""

    label: str
    text: str


class Tick(Value, frozen=True):
    """A moment on a lane."""

    at: float
    label: str
    tone: Tone
    detail: str = ""


class LaneSpan(Value, frozen=True):
    """A stretch of time on a lane."""

    start: float
    end: float
    tone: Tone
    label: str


class Lane(Value, frozen=True):
    """A pod's line on a timeline."""

    key: str
    label: str
    href: str = ""
    spans: tuple[LaneSpan, ...] = ()
    ticks: tuple[Tick, ...] = ()


class Gap(Value, frozen=True):
    """A stretch of time in which nothing happened; it is drawn narrow."""

    start: float
    end: float


class Point(Value, frozen=True):
    """A value from a moment on."""

    at: float
    value: float


class Lanes(Block, frozen=True):
    """A timeline: lanes, and above them a line (unavailable pods) with its ceiling (maxUnavailable)."""

    id: str
    caption: str
    start: float
    end: float
    lanes: tuple[Lane, ...]
    gaps: tuple[Gap, ...] = ()
    ticks: tuple[Tick, ...] = ()
    line: tuple[Point, ...] = ()
    ceiling: tuple[Point, ...] = ()


class Choice(Value, frozen=True):
    """A value that can be chosen, and its label."""

    value: str
    label: str


class Slider(Block, frozen=True):
    """Selects one of ordered values of the query parameter `name`."""

    name: str
    label: str
    values: tuple[Choice, ...]
    value: str


class Node(Value, frozen=True):
    """A node of a graph; `column` 0 is the leftmost."""

    key: str
    label: str
    column: int
    tone: Tone = "idle"
    href: str = ""
    detail: str = ""


class Edge(Value, frozen=True):
    """An arrow of a graph, between keys of nodes."""

    source: str
    target: str
    label: str = ""
    tone: Tone = "idle"


class Graph(Block, frozen=True):
    """Nodes in columns, and arrows between them. A table beside it has the same content as text."""

    id: str
    caption: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


class Field(Value, frozen=True):
    """A field of a form."""

    name: str
    label: str
    kind: Literal["text", "search", "number", "select", "checkbox", "hidden", "textarea"] = "text"
    value: str = ""
    choices: tuple[Choice, ...] = ()
    required: bool = False
    help: str = ""


class Form(Block, frozen=True):
    """A form. The renderers add the CSRF token to those with method `post`."""

    id: str
    action: str
    method: Literal["get", "post"]
    fields: tuple[Field, ...]
    submit: str
    tone: Tone = "idle"


class Group(Block, frozen=True):
    """Blocks that can be folded away below a summary."""

    id: str
    summary: Spans
    blocks: tuple[
        "Heading | Paragraph | Notice | Facts | Table | Group | Diff | Preformatted | Lanes | Slider | Graph | Form",
        ...,
    ]
    open: bool = False


AnyBlock: TypeAlias = (
    Heading | Paragraph | Notice | Facts | Table | Group | Diff | Preformatted | Lanes | Slider | Graph | Form
)


def spans(*pieces: str | Span) -> Spans:
    """Return the pieces as a line; strings become plain text, empty ones nothing."""
    return tuple(Text(piece) if isinstance(piece, str) else piece for piece in pieces if piece != "")
