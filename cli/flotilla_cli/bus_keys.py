"""`flotilla bus-keys`: what the init container of a bus inside the cluster does."""

import asyncio
from pathlib import Path

import click

from flotilla_cli.connection import Target, open_api, reported
from flotilla_cli.install.bus_keys import BusKeys
from flotilla_cli.install.rbac import NAMESPACE
from flotilla_cli.options import cluster_options
from flotilla_common.clock import SystemClock


@click.command("bus-keys")
@cluster_options
@click.option("-n", "--namespace", default=NAMESPACE, envvar="POD_NAMESPACE", show_default=True, help="Flotilla's own.")
@click.option(
    "--into", type=click.Path(file_okay=False, path_type=Path), required=True, help="The folder that nats-server reads."
)
@click.option("--host", "hosts", multiple=True, required=True, help="A name or address of the server; repeatable.")
def bus_keys(kubeconfig: str, context: str, namespace: str, into: Path, hosts: tuple[str, ...]) -> None:
    """Make what is missing of the keys of a bus inside a cluster, and write what its nats-server reads."""
    with reported():
        asyncio.run(_prepare(Target(kubeconfig, context), namespace, into, hosts))


async def _prepare(target: Target, namespace: str, into: Path, hosts: tuple[str, ...]) -> None:
    async with open_api(target) as api:
        await BusKeys(api, namespace, SystemClock()).prepare(into, hosts)
