"""Writes SVG: a canvas to which boxes, lines and texts are added, readable on light and dark pages."""

from html import escape

INK, DIM, PAPER = "#1f2933", "#66788a", "#ffffff"
READS, WRITES = "#1d6fb8", "#c2410c"
FONT = "font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\""


class Canvas:
    """A picture of a size; everything is drawn in the order of the calls."""

    def __init__(self, width: int, height: int, title: str, *, paper: str = PAPER) -> None:
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" {FONT}>',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width}" height="{height}" rx="6" fill="{paper}"/>',
        ]

    def box(self, x: int, y: int, width: int, height: int, *, fill: str = "#eef2f6", line: str = DIM) -> None:
        """Draw a box."""
        self._parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="{fill}" stroke="{line}"/>'
        )

    def text(
        self,
        x: int,
        y: int,
        text: str,
        *,
        size: float = 12,
        color: str = INK,
        anchor: str = "start",
        bold: bool = False,
        length: int = 0,
    ) -> None:
        """Write a line of text; `y` is its baseline. With a `length`, it is made that wide."""
        style = f'font-size="{size}" fill="{color}" text-anchor="{anchor}"'
        style += ' font-weight="bold"' if bold else ""
        style += f' textLength="{length}" lengthAdjust="spacingAndGlyphs" xml:space="preserve"' if length else ""
        self._parts.append(f'<text x="{x}" y="{y}" {style}>{escape(text)}</text>')

    def line(
        self, x1: int, y1: int, x2: int, y2: int, *, color: str = DIM, width: float = 1, dashed: bool = False
    ) -> None:
        """Draw a line."""
        dash = ' stroke-dasharray="4 4"' if dashed else ""
        self._parts.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{color}" stroke-width="{width}"{dash}/>'
        )

    def arrow(self, x1: int, y1: int, x2: int, y2: int, *, color: str = INK) -> None:
        """Draw an arrow along an axis."""
        self.line(x1, y1, x2, y2, color=color, width=1.5)
        dx, dy = (x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1)
        left = f"{x2 - 7 * dx - 4 * dy},{y2 - 7 * dy - 4 * dx}"
        right = f"{x2 - 7 * dx + 4 * dy},{y2 - 7 * dy + 4 * dx}"
        self._parts.append(f'<polygon points="{x2},{y2} {left} {right}" fill="{color}"/>')

    def dot(self, x: int, y: int, *, color: str, filled: bool) -> None:
        """Draw a filled dot or a ring."""
        fill = color if filled else PAPER
        self._parts.append(f'<circle cx="{x}" cy="{y}" r="5" fill="{fill}" stroke="{color}" stroke-width="2"/>')

    def svg(self) -> str:
        """Return the picture as text."""
        return "\n".join((*self._parts, "</svg>\n"))
