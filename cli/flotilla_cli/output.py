"""Prints drawings and the progress of steps.

Drawings are in colours on a terminal, text in a pipe, or JSON. Progress goes to standard error: a spinner with the
elapsed time on a terminal, plain lines elsewhere.
"""

import io
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager

import click
import msgspec
from rich.console import Console, RenderableType
from rich.live import Live
from rich.status import Status

from flotilla_common.clock import Clock

PLAIN_WIDTH = 4000
"""Columns of plain text: nothing is cut or wrapped in a pipe."""

Say = Callable[[str], None]
REPEAT_SECONDS = 10.0
FIGURES = re.compile(r"\d[\d,.]*")


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


class Progress:
    """The steps of one command; each ends with a line that has its title and its duration."""

    def __init__(self, clock: Clock, console: Console | None = None) -> None:
        self._clock = clock
        self._console = console or Console(stderr=True, highlight=False)

    @contextmanager
    def step(self, title: str) -> Generator[Say]:
        """Show one step; call the yielded function with its details."""
        started = self._clock.monotonic()
        if self._console.is_terminal:
            with self._console.status(title) as spinner:
                yield self._spinning(spinner, title)
        else:
            self._console.print(f"{title} …", markup=False)
            yield self._lines()
        elapsed = self._clock.monotonic() - started
        self._console.print(f"[green]✓[/] {title} [dim]({elapsed:.1f} s)[/]", soft_wrap=True)

    def note(self, text: str) -> None:
        """Print a line on its own."""
        self._console.print(text, markup=False, soft_wrap=True)

    def _lines(self) -> Say:
        """Return a function that prints lines; one that differs only in its figures is repeated rarely."""
        last_words, last_at = "", 0.0

        def say(detail: str) -> None:
            nonlocal last_words, last_at
            words, now = FIGURES.sub("", detail), self._clock.monotonic()
            if words != last_words or now - last_at > REPEAT_SECONDS:
                last_words, last_at = words, now
                self._console.print(f"  {detail}", markup=False, soft_wrap=True)

        return say

    def _spinning(self, spinner: Status, title: str) -> Say:
        started = self._clock.monotonic()

        def say(detail: str) -> None:
            spinner.update(f"{title}: {detail} ({self._clock.monotonic() - started:.0f} s)")

        return say
