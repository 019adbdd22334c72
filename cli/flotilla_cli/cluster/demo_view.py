"""How the demo looks: a live table on a terminal, a line per change elsewhere, and a comparison at the end."""

from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table

from flotilla_cli.cluster.demo import Row, Rows, Show


@contextmanager
def shown(console: Console, title: str) -> Generator[Show]:
    """Show the pods of one half of the demo while they change."""
    console.print(f"\n[bold]{title}[/]")
    if console.is_terminal:
        with Live(console=console, refresh_per_second=10) as live:
            yield lambda rows: live.update(table(rows))
    else:
        yield _Lines(console).show


class _Lines:
    """Prints a pod's line when it changed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last: dict[str, Row] = {}

    def show(self, rows: Rows) -> None:
        for name, row in rows.items():
            if self._last.get(name) != row:
                self._console.print(_line(row), markup=False, soft_wrap=True)
        self._last = dict(rows)


def table(rows: Rows) -> Table:
    """The pods as kubectl would print them."""
    made = Table("POD", "READY", "IMAGE", "RESTARTS", "NODE", "IP", box=None, padding=(0, 3, 0, 0))
    for row in rows.values():
        ready = "[green]yes[/]" if row.ready else "[yellow]no[/]"
        made.add_row(row.name, ready, row.image or "-", str(row.restarts), row.node or "-", row.ip or "-")
    return made


def comparison(before: Rows, after: Rows) -> Table:
    """Before and after, side by side."""
    made = Table("POD", "UID", "NODE", "IP", "IMAGE", "RESTARTS", box=None, padding=(0, 3, 0, 0))
    for name, new in after.items():
        old = before.get(name, new)
        made.add_row(
            name,
            _kept(old.uid[:8], new.uid[:8]),
            _kept(old.node, new.node),
            _kept(old.ip, new.ip),
            f"{old.image} → [cyan]{new.image}[/]",
            f"{old.restarts} → [cyan]{new.restarts}[/]",
        )
    return made


def _kept(old: str, new: str) -> str:
    return f"{new} [green]kept[/]" if old == new else f"[red]{old} → {new}[/]"


def _line(row: Row) -> str:
    ready = "ready" if row.ready else "not ready"
    image = row.image or "no container yet"
    place = f"{row.node}  {row.ip}" if row.node else "no node yet"
    return f"  {row.name}  {ready:<9}  {image:<16}  restarts {row.restarts}  {place}".rstrip()
