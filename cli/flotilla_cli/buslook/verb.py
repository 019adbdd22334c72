"""`flotilla bus`: what is on the bus, how fast, and who does not keep up."""

import asyncio
import contextlib

import click
import msgspec
from rich.console import Console
from rich.live import Live

from flotilla_cli.buslook.gather import look
from flotilla_cli.buslook.render import render
from flotilla_cli.buslook.view import View, view
from flotilla_cli.connection import connected, open_bus, reported, required_nats_url
from flotilla_cli.heartbeats import LISTEN_SECONDS
from flotilla_cli.options import bus_option
from flotilla_cli.plain import plain, printed
from flotilla_cli.services import installed, load
from flotilla_common.clock import SystemClock


@click.command()
@bus_option
@click.option(
    "--seconds", type=click.FloatRange(min=0.1), default=LISTEN_SECONDS, show_default=True, help="How long to listen."
)
@click.option("-w", "--watch", is_flag=True, help="Again and again, until Ctrl-C.")
@click.option("--all", "everything", is_flag=True, help="Streams without objects, too.")
@click.option("-o", "--output", type=click.Choice(["json"]), help="One JSON document; with -w one per line.")
def bus(nats: str, seconds: float, watch: bool, everything: bool, output: str | None) -> None:
    """Show the bus: streams with their rates, markers of the watchers, who reads and is behind, replicas by their
    heartbeats, where most traffic comes from, the largest objects."""
    url = required_nats_url(nats)
    with reported(), contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_bus(url, seconds, _Screen(output == "json", everything=everything), watch=watch))


async def _bus(url: str, seconds: float, screen: "_Screen", *, watch: bool) -> None:
    clock = SystemClock()
    services = [name for name, point in installed().items() if load(point).permissions is not None]
    async with open_bus(url) as opened:
        await connected(opened, clock)
        with screen:
            while True:
                screen.show(view(await look(opened, clock, seconds), services), live=watch)
                if not watch:
                    return


class _Screen:
    """A terminal that is redrawn, plain text, or JSON."""

    def __init__(self, json: bool, *, everything: bool) -> None:
        self._json = json
        self._everything = everything
        self._console = Console(highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")

    def show(self, shown: View, *, live: bool) -> None:
        """Draw it, in place of what was there before if it is `live`."""
        drawing = render(shown, everything=self._everything)
        if self._json:
            click.echo(msgspec.json.encode(shown).decode())
        elif not live:
            printed(drawing, self._console)
        elif self._console.is_terminal:
            self._live.start()
            self._live.update(drawing, refresh=True)
        else:
            click.echo(plain(drawing))

    def __enter__(self) -> None:
        """Nothing is drawn yet."""

    def __exit__(self, *_: object) -> None:
        self._live.stop()
