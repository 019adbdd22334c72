"""Prints drawings in colours for a terminal, as text for a pipe, or as JSON."""

import io
from collections.abc import Callable

import click
import msgspec
from rich.console import Console, RenderableType
from rich.live import Live

PLAIN_WIDTH = 4000
"""Columns of plain text: nothing is cut or wrapped in a pipe."""


def plain(shown: RenderableType) -> str:
    """Return the drawing as text without colours."""
    output = io.StringIO()
    Console(file=output, width=PLAIN_WIDTH, color_system=None, force_terminal=False).print(shown, end="")
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines()) + "\n"


def printed(shown: RenderableType, *, soft_wrap: bool = False) -> None:
    """Print in colours on a terminal, else as plain text."""
    console = Console(highlight=False, soft_wrap=soft_wrap)
    if console.is_terminal:
        console.print(shown)
    else:
        click.echo(plain(shown), nl=False)


class Screen:
    """An output that changes: a terminal that is redrawn, plain text, or JSON."""

    def __init__(self, *, json: bool) -> None:
        self._json = json
        self._console = Console(highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
        self._last = ""
        self.height = self._console.height if self._console.is_terminal and not json else 0
        """Lines of the terminal; 0 without one, where everything is shown."""

    def once(self, draw: Callable[[], RenderableType], data: object) -> None:
        """Print once."""
        if self.height:
            self._console.print(draw())
        else:
            click.echo(self._text(draw, data), nl=False)

    def again(self, draw: Callable[[], RenderableType], data: object) -> None:
        """Replace the drawing on the terminal; print plain text and JSON only if they changed."""
        if self.height:
            self._live.start()
            self._live.update(draw(), refresh=True)
        elif (text := self._text(draw, data)) != self._last:
            self._last = text
            click.echo(text if self._json else f"{text}\n", nl=False)

    def __enter__(self) -> None:
        """Enter the block; the display starts with the first drawing."""

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def _text(self, draw: Callable[[], RenderableType], data: object) -> str:
        return msgspec.json.encode(data).decode() + "\n" if self._json else plain(draw())
