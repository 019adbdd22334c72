"""`flotilla console`: the console on this machine, for its user alone.

It works with the identity of the kubeconfig, so that it needs no rights but the user's, and without a bus it watches
the cluster directly. It listens on the loopback address only, and asks for a key that only the printed URL has.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from flotilla_cli import console_key
from flotilla_cli.connection import Target, nats_url_of, open_api, open_bus, reported, target_of
from flotilla_cli.local import HOST
from flotilla_cli.options import bus_option, cluster_options
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import Clock, SystemClock, SystemEntropy
from flotilla_common.health import Health
from flotilla_common.service import Context, Service
from flotilla_common.settings import Settings, SettingsError, load, split_flags
from flotilla_insight.services import installed
from flotilla_insight.services import load as load_service

NAME = "console"

NO_BUS = "nats://127.0.0.1:9"
"""The address of a bus that never answers: only root can listen on this port."""

POLL = 0.05


@click.command()
@cluster_options
@bus_option
@click.option("--port", type=click.IntRange(1024, 65535), help="The port on this machine.  [default: a free one]")
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open the page in a browser.")
def console(kubeconfig: str, context: str, nats: str, port: int | None, browser: bool) -> None:
    """Show rollouts, reasons and the bus in a browser, with the rights of your kubeconfig.

    Prints a URL that begins one session. Ctrl-C ends the console.
    """
    point = installed().get(NAME)
    if point is None:
        raise click.ClickException("`flotilla console` needs the package flotilla-console, which is not installed.")
    target, url = target_of(kubeconfig, context), nats_url_of(nats, kubeconfig)
    with TemporaryDirectory(prefix="flotilla-console-") as folder, reported(), contextlib.suppress(KeyboardInterrupt):
        file = Path(folder, "key")
        settings = settings_of(port or _free_port(), file, with_bus=bool(url))
        asyncio.run(_show(load_service(point), settings, target, url, console_key.offer(file), browser=browser))


def settings_of(port: int, file: Path, *, with_bus: bool) -> Settings:
    """Return the settings of a console on this machine. Raises click.ClickException for wrong variables."""
    own = [*console_key.flags(port, file), *([] if with_bus else ["--bus-fallback-after=0s"])]
    flags, _ = split_flags(own)
    try:
        return load(flags, os.environ)
    except SettingsError as error:
        raise click.ClickException("\n       ".join(error.problems)) from error


async def _show(service: Service, settings: Settings, target: Target, url: str, key: str, *, browser: bool) -> None:
    """Serve until cancelled; print the URL as soon as the console answers."""
    clock, entropy = SystemClock(), SystemEntropy()
    async with open_api(target) as api, _bus(url, target) as bus:
        context = Context(
            service=service.name,
            settings=settings,
            gates=settings.gates(),
            api=api,
            bus=bus,
            clock=clock,
            entropy=entropy,
            health=Health(),
            replica=entropy.token(),
        )
        announcing = asyncio.create_task(_announce(settings.console_port, key, clock, browser=browser))
        try:
            await service.run(context)
        finally:
            announcing.cancel()


@asynccontextmanager
async def _bus(url: str, target: Target) -> AsyncGenerator[NatsBus]:
    """Yield the bus, or one that never answers if none is known."""
    if url:
        async with open_bus(url, target.kubeconfig) as bus:
            yield bus
        return
    nowhere = NatsBus(Settings(nats_url=NO_BUS), name=NAME)
    try:
        yield nowhere
    finally:
        await nowhere.close()


async def _announce(port: int, key: str, clock: Clock, *, browser: bool) -> None:
    while not await _answers(port):
        await clock.sleep(POLL)
    url = console_key.url_of(port, key)
    click.echo(f"The console is at\n\n  {url}\n\nThe URL is valid for one session. Ctrl-C ends the console.")
    if browser and click.launch(url):
        click.echo("No browser could be started here; open the URL yourself.", err=True)


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    writer.close()
    return True


def _free_port() -> int:
    with socket.socket() as one:
        one.bind((HOST, 0))
        return one.getsockname()[1]
