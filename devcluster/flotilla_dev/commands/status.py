"""`flotilla status`: prints the processes of the local cluster and their health."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table

from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.status import check
from flotilla_dev.commands.options import LOG_WIDTH, completed, state_folder, state_option
from flotilla_insight.doctor.facts import Health


@click.command()
@state_option
@click.option("-o", "--output", type=click.Choice(["json"]), help="Print it as JSON.")
def status(state: Path | None, output: str | None) -> None:
    """Show the local cluster's processes and their health."""
    folder = state_folder(state)
    lines = completed(check(folder, SystemClock()))
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(lines), indent=2).decode())
    elif not lines:
        click.echo(f"There is no local cluster in {folder}. `flotilla up` starts one.")
    else:
        _print_status(lines)
    sys.exit(0 if lines and all(line.healthy for line in lines) else 1)


def _print_status(lines: Sequence[Health]) -> None:
    made = Table("PROCESS", "PID", "STATE", "HEALTH", "LOG", box=None, padding=(0, 3, 0, 0))
    for line in lines:
        state = "[green]up[/]" if line.running else "[red]down[/]"
        made.add_row(line.name, str(line.pid or "-"), state, line.detail, line.log)
    Console(width=None if sys.stdout.isatty() else LOG_WIDTH).print(made)
