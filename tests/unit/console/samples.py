"""Every kind of block, with a text of the test's choice in every position."""

import msgspec

from flotilla_console.blocks.types import (
    Age,
    AnyBlock,
    Badge,
    Bar,
    Choice,
    Column,
    Diff,
    DiffLine,
    Edge,
    Fact,
    Facts,
    Field,
    Form,
    Gap,
    Graph,
    Group,
    Heading,
    Lane,
    Lanes,
    LaneSpan,
    Link,
    Mono,
    Node,
    Notice,
    Paragraph,
    Part,
    Point,
    Preformatted,
    Row,
    Slider,
    Table,
    Text,
    Tick,
    spans,
)

NOW = 1_800_000_000.0


def line(text: str):
    parts = (Part(text, 3, "ok"), Part(text, 1, "busy"))
    badges = tuple(Badge(text, tone) for tone in ("ok", "busy", "warn", "bad", "idle"))
    return spans(Text(text), Link(text, "/pods/a/b"), *badges, Age(NOW - 300), Mono(text), Bar(text, parts, 5))


def table(text: str) -> Table:
    columns = (Column(text, text, sortable=True), Column("b", text, numeric=True, sortable=True), Column("c", text))
    rows = (Row(text, (line(text), spans(text), spans())), Row("second", (spans(text),) * 3, tone="bad"))
    return Table(text, text, columns, rows, total=30, offset=10, limit=2, sort="b", descending=True)


def lanes(text: str) -> Lanes:
    lane = Lane(
        text,
        text,
        "/pods/a/b",
        (LaneSpan(NOW, NOW + 7, "busy", text), LaneSpan(NOW + 90, NOW + 99, "bad", text)),
        (Tick(NOW + 3, text, "ok", text), Tick(NOW + 100, text, "warn")),
    )
    return Lanes(
        text,
        text,
        NOW,
        NOW + 100,
        (lane, Lane("plain", text)),
        gaps=(Gap(NOW + 20, NOW + 80),),
        ticks=(Tick(NOW + 50, text, "idle"),),
        line=(Point(NOW, 0), Point(NOW + 10, 2), Point(NOW + 90, 1)),
        ceiling=(Point(NOW, 2),),
    )


def graph(text: str) -> Graph:
    nodes = (Node("a", text, 0, "ok", "/nodes/a", text), Node("b", text, 1), Node("c", text, 99, "bad"))
    return Graph(text, text, nodes, (Edge("a", "b", text, "busy"), Edge("a", "gone", text)))


def form(text: str, method="post") -> Form:
    choices = (Choice(text, text), Choice("other", text))
    kinds = ("text", "search", "number", "select", "checkbox", "hidden", "textarea")
    fields = tuple(Field(text, text, kind, text, choices, help=text) for kind in kinds)
    return Form(text, "/search", method, (*fields, Field("r", text, required=True)), text, "warn")


def every_block(text: str) -> tuple[AnyBlock, ...]:
    plain: tuple[AnyBlock, ...] = (
        Heading(text, 3, text),
        Heading(text),
        Paragraph(line(text)),
        Notice("warn", line(text)),
        Facts((Fact(text, line(text)), Fact("b", ()))),
        table(text),
        Table("empty", text, (Column("a", text),), (), 0),
        Diff(text, (DiffLine("+", text), DiffLine("-", text), DiffLine(" ", text))),
        Preformatted(text, f"\n{text}\n"),
        lanes(text),
        Lanes("none", text, NOW, NOW, ()),
        Slider(text, text, (Choice(text, text), Choice("b", text)), "b"),
        graph(text),
        form(text),
        msgspec.structs.replace(form(text, "get"), id=f"{text}-get"),
    )
    return (*plain, Group(text, line(text), plain, open=True), Group("closed", spans(text), ()))
