"""`flotilla bus`: what is on the bus, its rates, and consumers that lag behind."""

import asyncio
import contextlib
from functools import partial

import click

from flotilla_cli.bus.render import render
from flotilla_cli.connection import open_bus, reported, required_nats_url
from flotilla_cli.options import bus_option
from flotilla_cli.output import Screen
from flotilla_common.clock import SystemClock
from flotilla_insight.bus.connection import connected
from flotilla_insight.bus.gather import gather
from flotilla_insight.bus.view import view
from flotilla_insight.published import LISTEN_SECONDS
from flotilla_insight.services import installed, load, usual


@click.command()
@bus_option
@click.option(
    "--seconds", type=click.FloatRange(min=0.1), default=LISTEN_SECONDS, show_default=True, help="How long to listen."
)
@click.option("-w", "--watch", is_flag=True, help="Refresh until interrupted.")
@click.option("--all", "everything", is_flag=True, help="Show streams without objects, too.")
@click.option("-o", "--output", type=click.Choice(["json"]), help="One JSON document; with -w one per line.")
def bus(nats: str, seconds: float, watch: bool, everything: bool, output: str | None) -> None:
    """Show the bus: streams and rates, markers, consumers that are behind, replicas, traffic, largest objects."""
    url = required_nats_url(nats)
    with reported(), contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_bus(url, seconds, Screen(json=output == "json"), watch=watch, everything=everything))


def expected() -> list[str]:
    """Return the services that should have a heartbeat on the bus: those that run by default and use it."""
    found = installed()
    return [name for name in usual() if load(found[name]).permissions is not None]


async def _bus(url: str, seconds: float, screen: Screen, *, watch: bool, everything: bool) -> None:
    clock = SystemClock()
    services = expected()
    async with open_bus(url) as opened:
        await connected(opened, clock)
        with screen:
            while True:
                shown = view(await gather(opened, clock, seconds), services)
                draw = partial(render, shown, everything=everything)
                if not watch:
                    screen.once(draw, shown)
                    return
                screen.again(draw, shown)
