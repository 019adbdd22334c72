"""`flotilla down`: stops the local cluster."""

import shutil
from pathlib import Path

import click

from flotilla_cli.output import Progress
from flotilla_common.clock import SystemClock
from flotilla_dev.cluster import state as folders
from flotilla_dev.cluster.up import stop_all
from flotilla_dev.commands.options import completed, state_folder, state_option


@click.command()
@state_option
@click.option("--keep", is_flag=True, help="Keep the state folder: `flotilla up` continues from it.")
def down(state: Path | None, keep: bool) -> None:
    """Stop the local cluster and remove what it left."""
    folder = state_folder(state)
    if not folders.is_ours(folder):
        click.echo(f"There is no local cluster in {folder}.")
        return
    completed(_down(folder, keep=keep))


async def _down(folder: Path, *, keep: bool) -> None:
    clock = SystemClock()
    progress = Progress(clock)
    with folders.only_one(folder):
        with progress.step("Stop the local cluster") as say:
            count = await stop_all(folder, clock, say)
        if not keep:
            shutil.rmtree(folder)
    progress.note(f"{count} processes stopped; {folder} {'kept' if keep else 'removed'}.")
