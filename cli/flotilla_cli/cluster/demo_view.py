"""How the demo looks: a live table on a terminal, a line per change elsewhere, and a comparison at the end.

All of it fits into 80 columns.
"""

from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table

from flotilla_cli.cluster.demo import AFTER, Row, Rows, Show
from flotilla_common.api.images import ImageName

TRY_NEXT = """\
  kubectl get clonesets,pods -o wide
  kubectl patch cloneset sample --type merge -p '{"spec": {"template": {"spec":
    {"containers": [{"name": "nginx", "image": "nginx:latest"}]}}}}'
  flotilla get cloneset sample -w    # live tree: revisions, pods, why they wait
  flotilla explain cloneset sample   # why it stands where it stands
  flotilla tail sample               # changes, decisions and writes, live
"""

TRY_CHART = """\
  flotilla image push{option}              # its image and NATS's, into the nodes' registry
  helm install flotilla helm/flotilla --wait
"""


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
    made = _table("POD", "READY", "IMAGE", "RESTARTS", "NODE", "IP")
    for row in rows.values():
        ready = "[green]yes[/]" if row.ready else "[yellow]no[/]"
        made.add_row(row.name, ready, row.image or "-", str(row.restarts), row.node or "-", row.ip or "-")
    return made


def comparison(before: Rows, after: Rows) -> Table:
    """Before and after, side by side: green is what was kept."""
    made = _table("POD", "UID", "NODE", "IP", "IMAGE", "RESTARTS")
    for name, new in after.items():
        old = before.get(name, new)
        made.add_row(
            name,
            _kept(old.uid[:8], new.uid[:8]),
            _kept(old.node, new.node),
            _kept(old.ip, new.ip),
            f"{_tag(old.image)} → [cyan]{_tag(new.image)}[/]",
            f"{old.restarts} → [cyan]{new.restarts}[/]",
        )
    return made


def _table(*columns: str) -> Table:
    return Table(*columns, box=None, padding=(0, 2, 0, 0), pad_edge=False)


def _kept(old: str, new: str) -> str:
    return f"[green]{new}[/]" if old == new else f"[red]{old} → {new}[/]"


def _tag(image: str) -> str:
    return ImageName.parse(image).tag or image


def _line(row: Row) -> str:
    ready = "ready" if row.ready else "not ready"
    image = row.image or "no image yet"
    place = f"{row.node}  {row.ip}" if row.node else "no node yet"
    return f"  {row.name}  {ready:<9}  {image:<{len(AFTER)}}  restarts {row.restarts}  {place}".rstrip()
