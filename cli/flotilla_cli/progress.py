"""Progress output on standard error: a spinner with the elapsed time on a terminal, plain lines elsewhere."""

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status

from flotilla_common.clock import Clock

Say = Callable[[str], None]
REPEAT = 10.0  # seconds
FIGURES = re.compile(r"\d[\d,.]*")


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
            if words != last_words or now - last_at > REPEAT:
                last_words, last_at = words, now
                self._console.print(f"  {detail}", markup=False, soft_wrap=True)

        return say

    def _spinning(self, spinner: Status, title: str) -> Say:
        started = self._clock.monotonic()

        def say(detail: str) -> None:
            spinner.update(f"{title}: {detail} ({self._clock.monotonic() - started:.0f} s)")

        return say
