"""Positions in pictures, in whole units. `web/static/geometry.js` computes the same ones."""

import math
from collections.abc import Sequence

from flotilla_console.blocks.types import Gap, Graph, Lanes, Node, Point

WIDTH = 1000
"""The width of a lane."""
GAP_WIDTH = 16
"""The width of a stretch of time in which nothing happened."""
LINE_HEIGHT = 60
"""The height of the line above the lanes."""

COLUMN, BOX, ROW, BOX_HEIGHT = 420, 300, 56, 44
"""Distance of columns and width of boxes, distance of rows and height of boxes, of a graph."""


class Scale:
    """Positions of moments on a lane; gaps are narrow."""

    def __init__(self, start: float, end: float, gaps: Sequence[Gap]) -> None:
        self._start, self._end = start, max(end, start + 1)
        self._gaps = [(max(gap.start, self._start), min(gap.end, self._end)) for gap in gaps]
        self._gaps = sorted(gap for gap in self._gaps if gap[1] > gap[0])
        idle = sum(end - start for start, end in self._gaps)
        shown = max(self._end - self._start - idle, 1)
        self._unit = max(WIDTH - GAP_WIDTH * len(self._gaps), WIDTH // 10) / shown

    def x(self, at: float) -> int:
        """Return the position of a moment."""
        at = min(max(at, self._start), self._end)
        position, done = 0.0, self._start
        for start, end in self._gaps:
            if at <= start:
                break
            position += max(start - done, 0) * self._unit + GAP_WIDTH * (min(at, end) - start) / (end - start)
            done = max(done, min(at, end))
        return whole(position + max(at - done, 0) * self._unit)


def whole(number: float) -> int:
    """Return the nearest whole number, as JavaScript rounds."""
    return math.floor(number + 0.5)


def steps(points: Sequence[Point], scale: Scale, top: float) -> str:
    """Return the path of values that each last until the next; `top` is the highest value of the picture."""
    drawn = ""
    for point in points:
        y = LINE_HEIGHT - whole(LINE_HEIGHT * min(max(point.value, 0), top) / top)
        drawn += f"H{scale.x(point.at)}V{y}" if drawn else f"M{scale.x(point.at)} {y}"
    return f"{drawn}H{WIDTH}" if drawn else ""


def top_of(lanes: Lanes) -> float:
    """Return the highest value of the line and of its ceiling."""
    return max([1.0, *(point.value for point in (*lanes.line, *lanes.ceiling))])


def places(graph: Graph) -> dict[str, tuple[int, int]]:
    """Return the upper left corner of each node, by key."""
    rows: dict[int, int] = {}
    found: dict[str, tuple[int, int]] = {}
    for node in graph.nodes:
        column = column_of(node)
        row = rows.get(column, 0)
        rows[column] = row + 1
        found[node.key] = (column * COLUMN, row * ROW)
    return found


def column_of(node: Node) -> int:
    """Return the column of a node within limits."""
    return min(max(node.column, 0), 20)
