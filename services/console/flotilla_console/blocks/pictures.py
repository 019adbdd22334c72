"""Renders timelines and graphs as inline SVG.

Browsers cannot style SVG by attributes of `style` under our policy, so classes give the colours. Each picture has its
content as text below it: lanes as a table, a graph in a table that its page adds.
"""

from collections.abc import Iterator

from flotilla_console.blocks.geometry import (
    BOX,
    BOX_HEIGHT,
    COLUMN,
    LINE_HEIGHT,
    WIDTH,
    Scale,
    column_of,
    places,
    steps,
    top_of,
    whole,
)
from flotilla_console.blocks.markup import Markup, element, local
from flotilla_console.blocks.times import clock_time, moment, stamp
from flotilla_console.blocks.types import Edge, Gap, Graph, Lane, Lanes, Node, Tick

_LANE_HEIGHT = 20
_MIN_WIDTH = 2
_MAX_TEXT_ROWS = 1000
_LABEL_CHARACTERS = 40


def lanes(one: Lanes) -> Markup:
    """Return a timeline: the line with its ceiling, a row per lane, and all of it as a table."""
    scale = Scale(one.start, one.end, one.gaps)
    parts = [element("figcaption", None, one.caption), _axis(one)]
    if one.line or one.ceiling or one.ticks:
        parts.append(_line(one, scale))
    parts.append(element("ol", {"class": "lane-rows"}, *(_lane(lane, one, scale) for lane in one.lanes)))
    parts.append(_as_text(one))
    return element("figure", {"id": one.id, "class": "lanes"}, *parts)


def _axis(one: Lanes) -> Markup:
    return element("p", {"class": "lane-axis"}, _time(one.start), " to ", _time(one.end))


def _time(at: float) -> Markup:
    return element("time", {"datetime": stamp(at), "title": moment(at)}, clock_time(at))


def _line(one: Lanes, scale: Scale) -> Markup:
    top = top_of(one)
    drawn = [*(_gap(gap, scale, LINE_HEIGHT) for gap in one.gaps)]
    drawn += [_tick(tick, scale, LINE_HEIGHT) for tick in one.ticks]
    drawn += [element("path", {"class": "ceiling", "d": steps(one.ceiling, scale, top)})]
    drawn += [element("path", {"class": "line", "d": steps(one.line, scale, top)})]
    picture = _picture(LINE_HEIGHT, "lane-line", *drawn)
    return element("div", {"class": "lane-head"}, element("span", {"class": "lane-legend"}, *_legend(one)), picture)


def _legend(one: Lanes) -> Iterator[Markup]:
    """Yield the meaning of the two lines, the upper one first."""
    if one.ceiling:
        most = whole(one.ceiling[-1].value)
        yield element("span", {"class": "key key-ceiling"}, "maxUnavailable ", str(most))
    if one.line:
        yield element("span", {"class": "key key-line"}, "unavailable pods")


def _lane(lane: Lane, one: Lanes, scale: Scale) -> Markup:
    drawn = [_gap(gap, scale, _LANE_HEIGHT) for gap in one.gaps]
    for span in lane.spans:
        x = scale.x(span.start)
        width = max(scale.x(span.end) - x, _MIN_WIDTH)
        title = element("title", None, f"{span.label} {clock_time(span.start)} to {clock_time(span.end)}")
        shape = {"class": f"fill-{span.tone}", "x": x, "y": 4, "width": width, "height": _LANE_HEIGHT - 8}
        drawn.append(element("rect", shape, title))
    drawn += [_tick(tick, scale, _LANE_HEIGHT) for tick in lane.ticks]
    label = element("span", {"class": "lane-label"}, _label(lane.label, lane.href))
    return element("li", None, label, _picture(_LANE_HEIGHT, "lane-picture", *drawn))


def _label(label: str, href: str) -> str:
    safe = local(href)
    return label if safe is None else element("a", {"href": safe}, label)


def _picture(height: int, name: str, *drawn: Markup) -> Markup:
    box = f"0 0 {WIDTH} {height}"
    return element("svg", {"class": name, "viewBox": box, "preserveAspectRatio": "none", "aria-hidden": "true"}, *drawn)


def _gap(gap: Gap, scale: Scale, height: int) -> Markup:
    x = scale.x(gap.start)
    width = max(scale.x(gap.end) - x, 0)
    return element("rect", {"class": "gap", "x": x, "y": 0, "width": width, "height": height})


def _tick(tick: Tick, scale: Scale, height: int) -> Markup:
    x = max(min(scale.x(tick.at), WIDTH - _MIN_WIDTH), 0)
    title = element("title", None, f"{clock_time(tick.at)} {tick.label} {tick.detail}".rstrip())
    shape = {"class": f"fill-{tick.tone}", "x": x, "y": 0, "width": _MIN_WIDTH, "height": height}
    return element("rect", shape, title)


def _as_text(one: Lanes) -> Markup:
    rows: list[Markup] = []
    for row in _text_rows(one):
        rows.append(row)
        if len(rows) == _MAX_TEXT_ROWS:
            break
    head = (element("th", {"scope": "col"}, label) for label in ("Time", "Lane", "Event"))
    table = element(
        "table",
        None,
        element("caption", None, one.caption),
        element("thead", None, element("tr", None, *head)),
        element("tbody", None, *rows),
    )
    scroll = element("div", {"class": "scroll", "role": "region", "aria-label": one.caption, "tabindex": 0}, table)
    return element("details", {"class": "as-text"}, element("summary", None, "As text"), scroll)


def _text_rows(one: Lanes) -> Iterator[Markup]:
    for tick in one.ticks:
        yield _text_row(_time(tick.at), "", f"{tick.label} {tick.detail}".rstrip())
    for point in one.line:
        yield _text_row(_time(point.at), "", str(whole(point.value)))
    for lane in one.lanes:
        label = _label(lane.label, lane.href)
        for span in lane.spans:
            yield _text_row(_time(span.start), label, f"{span.label} until {clock_time(span.end)}")
        for tick in lane.ticks:
            yield _text_row(_time(tick.at), label, f"{tick.label} {tick.detail}".rstrip())


def _text_row(at: Markup, label: str, event: str) -> Markup:
    return element("tr", None, element("td", None, at), element("td", None, label), element("td", None, event))


def graph(one: Graph) -> Markup:
    """Return a graph: boxes in columns, and arrows between them."""
    where = places(one)
    columns = max((column_of(node) for node in one.nodes), default=0)
    height = max((y for _, y in where.values()), default=0) + BOX_HEIGHT + 8
    box = f"-4 -4 {columns * COLUMN + BOX + 8} {height}"
    arrows = [_edge(edge, where) for edge in one.edges if edge.source in where and edge.target in where]
    nodes = [_node(node, where[node.key]) for node in one.nodes]
    size = {"width": columns * COLUMN + BOX + 8, "height": height}
    picture = element("svg", {"viewBox": box, **size, "role": "group", "aria-label": one.caption}, *arrows, *nodes)
    scroll = element("div", {"class": "scroll", "role": "region", "aria-label": one.caption, "tabindex": 0}, picture)
    return element("figure", {"id": one.id, "class": "graph"}, element("figcaption", None, one.caption), scroll)


def _edge(edge: Edge, where: dict[str, tuple[int, int]]) -> Markup:
    (x1, y1), (x2, y2) = where[edge.source], where[edge.target]
    y1, y2, start = y1 + BOX_HEIGHT // 2, y2 + BOX_HEIGHT // 2, x1 + BOX
    middle = (start + x2) // 2
    path = f"M{start} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"
    drawn = element("path", {"class": f"stroke-{edge.tone}", "d": path})
    label = element("text", {"class": "edge-label", "x": middle, "y": (y1 + y2) // 2 - 4}, edge.label)
    return element("g", {"class": "edge"}, element("title", None, edge.label), drawn, label)


def _node(node: Node, corner: tuple[int, int]) -> Markup:
    x, y = corner
    shape = {"class": f"box stroke-{node.tone}", "x": x, "y": y, "width": BOX, "height": BOX_HEIGHT, "rx": 6}
    content = element(
        "g",
        {"class": "node"},
        element("title", None, f"{node.label} {node.detail}".rstrip()),
        element("rect", shape),
        element("text", {"x": x + 10, "y": y + 18}, _short(node.label)),
        element("text", {"class": "detail", "x": x + 10, "y": y + 34}, _short(node.detail)),
    )
    safe = local(node.href)
    return content if safe is None else element("a", {"href": safe}, content)


def _short(text: str) -> str:
    return text if len(text) <= _LABEL_CHARACTERS else f"{text[: _LABEL_CHARACTERS - 1]}…"
