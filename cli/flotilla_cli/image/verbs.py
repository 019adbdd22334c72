"""`flotilla image`: build the image, push it to a registry, or unpack it for `docker build`."""

import asyncio
from pathlib import Path

import click

from flotilla_cli.cluster.errors import ClusterError
from flotilla_cli.cluster.layout import default_state_dir
from flotilla_cli.cluster.provision import provide
from flotilla_cli.image import build as work
from flotilla_cli.image import nats, oci, tree, trial
from flotilla_cli.image import push as transfer
from flotilla_cli.image.errors import ImageError
from flotilla_common.clock import SystemClock

refresh_option = click.option("--refresh", is_flag=True, help="Take Debian's newest packages, not those of last time.")
repository_option = click.option("--repository", default=work.REPOSITORY, show_default=True, help="The image's name.")


@click.group()
def image() -> None:
    """Build and push the container image of all services, without Docker."""


@image.command()
@refresh_option
@repository_option
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), help="Write an OCI image layout here.")
@click.option("--sbom", type=click.Path(dir_okay=False, path_type=Path), help="Write the bill of materials here.")
def build(refresh: bool, repository: str, output: Path | None, sbom: Path | None) -> None:
    """Build the image into the cache, and say what is in it."""
    built = _built(refresh=refresh)
    for layer in built.layers:
        click.echo(f"{layer.title:14}{layer.size / 2**20:7.1f} MiB {len(layer.blob) / 2**20:7.1f} MiB compressed")
    if output:
        oci.write(built.image, output, work.reference(repository))
    if sbom:
        sbom.write_bytes(built.bill)
    click.echo(f"{work.reference(repository)}@{built.image.digest}")


@image.command()
@repository_option
@click.option("--registry", help="HOST:PORT.  [default: the registry of the local set's nodes]")
@click.option("--state", type=click.Path(file_okay=False, path_type=Path), help="The local set's state folder.")
def push(repository: str, registry: str | None, state: Path | None) -> None:
    """Push the image, and one of nats-server under its public name, for nodes that pull nothing."""
    built = _built()
    try:
        where = registry or transfer.registry_of(state or default_state_dir())
        # As this repository pins them: another one of this machine may need libraries that the image does not have.
        programs = asyncio.run(provide(["nats-server", "crane"], SystemClock(), pinned=True))
        server = nats.image(programs("nats-server"))
        _try(built, programs("nats-server"))
        named = {work.reference(repository): built.image, **dict.fromkeys(nats.NAMES, server)}
        for name, made in named.items():
            transfer.push(made, where, name, programs("crane"))
            click.echo(f"{where}/{name}@{made.digest}")
    except (ImageError, ClusterError) as error:
        raise click.ClickException(str(error)) from error


@image.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def unpack(folder: Path) -> None:
    """Write the files of each layer to a folder of its own: what the Dockerfile copies."""
    for layer in _built().layers:
        tree.write(layer.files(), folder / layer.title)


def _try(built: work.Built, server: Path) -> None:
    """Start both images once, before anybody else does. Raises ImageError."""
    bus = [[f"/{nats.PROGRAM}", "--version"]]
    for layers, commands in ((built.layers, work.first_commands()), ([nats.layer(server)], bus)):
        if untried := trial.start(layers, commands):
            click.echo(untried, err=True)
            return


def _built(*, refresh: bool = False) -> work.Built:
    try:
        return work.build(lambda text: click.echo(text, err=True), refresh=refresh)
    except (ImageError, ClusterError) as error:
        raise click.ClickException(str(error)) from error
