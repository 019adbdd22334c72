"""`flotilla node-creds`: credentials for the agent of one node on the bus of `flotilla run`."""

from pathlib import Path

import click

from flotilla_cli.local import write_private
from flotilla_cli.nats_config import BusUsers
from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.nats import NAME, reload_users
from flotilla_dev.cluster.processes import Processes
from flotilla_dev.cluster.state import default_bus_dir


@click.command("node-creds")
@click.argument("node")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Output file.  [default: NODE.creds]"
)
@click.option(
    "--nats-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="The bus's state folder, as for `flotilla run`.",
)
@click.option("--revoke", is_flag=True, help="Revoke the node's credentials instead.")
def node_creds(node: str, output: Path | None, nats_dir: Path | None, revoke: bool) -> None:
    """Create credentials for the agent of NODE.

    They allow the agent to publish and subscribe for this node only, and include the authority of the bus.
    Earlier credentials of the node become invalid. A running bus applies the change at once.
    """
    folder = (nats_dir or default_bus_dir()).absolute()
    users = BusUsers(folder)
    if revoke:
        if not users.remove_node(node):
            raise click.ClickException(f"node {node} has no credentials in {folder}")
        click.echo(f"revoked the credentials of node {node}{_taken_up(folder)}")
        return
    try:
        content = users.add_node(node, SystemClock())
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    file = output or Path(f"{node}.creds")
    write_private(file.absolute(), content)
    click.echo(f"{file}{_taken_up(folder)}")


def _taken_up(folder: Path) -> str:
    """Make the running server of this folder reload its users. Return a remark about it for the output."""
    process = Processes(folder).alive(NAME)
    if process is None:
        return ""
    reload_users(process)
    return " (the running bus was reloaded)"
