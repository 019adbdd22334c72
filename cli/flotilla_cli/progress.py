"""Progress for people: a spinner with the elapsed time on a terminal, plain lines elsewhere; all on standard error."""

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
    """Steps of one command. Each step ends with a line that says what was done and how long it took."""

    def __init__(self, clock: Clock, console: Console | None = None) -> None:
        self._clock = clock
        self._console = console or Console(stderr=True, highlight=False)

    @contextmanager
    def step(self, title: str) -> Generator[Say]:
        """One step; call the yielded function to say what it is at."""
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
        """A line on its own."""
        self._console.print(text, markup=False, soft_wrap=True)

    def _lines(self) -> Say:
        """Where lines stay, one that differs only in its figures is not worth another too often."""
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
