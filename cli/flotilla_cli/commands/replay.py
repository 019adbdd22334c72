"""`flotilla replay`: plans a bundle again, and compares each decision with the service's. Needs no cluster."""

from pathlib import Path

import click
import msgspec

from flotilla_cli.bundle.records import UnreadableBundle, read
from flotilla_cli.controllers import controller_of
from flotilla_cli.output import printed
from flotilla_cli.replay.render import document, render
from flotilla_cli.replay.replayer import Replay
from flotilla_common import logs


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Choice(["json"]), help="Print whole plans as one JSON document.")
@click.pass_context
def replay(context: click.Context, file: Path, output: str | None) -> None:
    """Plan a recorded workload again, step by step, with this release's planner.

    Exit code 1: a decision differs from that of the service.
    """
    logs.configure("error", "text")
    try:
        bundle = read(file.read_bytes())
    except UnreadableBundle as error:
        raise click.ClickException(f"{file}: {error}") from error
    again = Replay(bundle, controller_of(bundle.header.resource))
    steps = list(again.steps())
    if output == "json":
        click.echo(msgspec.json.encode(document(bundle, steps, again.missing)))
    else:
        printed(render(bundle, steps, again.missing))
    context.exit(int(any(step.differences for step in steps)))
