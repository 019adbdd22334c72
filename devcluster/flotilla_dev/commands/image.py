"""`flotilla image`: builds the image, pushes it to a registry, or unpacks it for `docker build`."""

import asyncio
from pathlib import Path

import click
import msgspec

from flotilla_cli.local import default_state_dir
from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.provision import provide
from flotilla_dev.cluster.realnodes import network
from flotilla_dev.image import build as work
from flotilla_dev.image import oci, tree, trial

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
@click.option("--registry", help="HOST:PORT.  [default: the registry of the local cluster's nodes]")
@click.option("--state", type=click.Path(file_okay=False, path_type=Path), help="The local cluster's state folder.")
def push(repository: str, registry: str | None, state: Path | None) -> None:
    """Push the image, and one of nats-server under its public name, for nodes that pull nothing."""
    built = _built()
    where = registry or _registry_of(state or default_state_dir())
    # As this repository pins them: another one of this machine may need libraries that the image does not have.
    programs = asyncio.run(provide(["nats-server", "crane"], SystemClock(), pinned=True))
    server = work.bus_image(programs("nats-server"))
    _try(built, programs("nats-server"))
    named = {work.reference(repository): built.image, **dict.fromkeys(work.BUS_NAMES, server)}
    for name, made in named.items():
        oci.push(made, where, name, programs("crane"))
        click.echo(f"{where}/{name}@{made.digest}")


@image.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def unpack(folder: Path) -> None:
    """Write the files of each layer to a folder of its own: what the Dockerfile copies."""
    for layer in work.build_dev(_say).layers:
        tree.write(layer.files(), folder / layer.title)


def _try(built: work.Built, server: Path) -> None:
    """Start both images once before they are pushed. Raises ClickException."""
    bus = [[f"/{work.BUS_PROGRAM}", "--version"]]
    for layers, commands in ((built.layers, work.first_commands()), ([work.bus_layer(server)], bus)):
        if untried := trial.start(layers, commands):
            click.echo(untried, err=True)
            return


def _built(*, refresh: bool = False) -> work.Built:
    return work.build(_say, refresh=refresh)


def _say(text: str) -> None:
    click.echo(text, err=True)


def _registry_of(state_dir: Path) -> str:
    """Return the address of a cluster's registry. Raises ClickException if it has no real nodes."""
    port, found = state_dir / "registry.json", network.read(state_dir)
    if found is None or not port.exists():
        raise click.ClickException(
            "The local cluster has no registry: `flotilla up --real-nodes 1` starts one, --registry names another."
        )
    return f"{found.host}:{msgspec.json.decode(port.read_bytes(), type=int)}"
