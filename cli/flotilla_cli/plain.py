"""What is drawn for a terminal, as text for a pipe."""

import io

import click
from rich.console import Console, RenderableType

PLAIN_WIDTH = 4000
"""Columns of plain text: nothing is ever cut or wrapped in a pipe."""


def plain(shown: RenderableType) -> str:
    """The same without colours."""
    output = io.StringIO()
    Console(file=output, width=PLAIN_WIDTH, color_system=None, force_terminal=False).print(shown, end="")
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines()) + "\n"


def printed(shown: RenderableType, console: Console | None = None) -> None:
    """Print in colours for a terminal, else plainly."""
    console = console or Console(highlight=False)
    if console.is_terminal:
        console.print(shown)
    else:
        click.echo(plain(shown), nl=False)
