"""`flotilla doctor`: what is wrong with an installation, since when, and what to do about it."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import click

from flotilla_cli import connection
from flotilla_cli.cluster.progress import Progress
from flotilla_cli.connection import Target, open_api, open_bus, reported, target_of
from flotilla_cli.doctor.catalogue import examine
from flotilla_cli.doctor.finding import Outcome, confirmed, exit_code, keys
from flotilla_cli.doctor.look import Places, look
from flotilla_cli.doctor.render import as_json, lines
from flotilla_cli.options import bus_option, cluster_options
from flotilla_common.clock import Clock, SystemClock

AGAIN_SECONDS = 2.0
"""Between two looks."""

MOST_LOOKS = 3


@click.command()
@cluster_options
@bus_option
@click.option("-o", "--output", type=click.Choice(["json"]), help="Print it as JSON.")
def doctor(kubeconfig: str, context: str, nats: str, output: str | None) -> None:
    """Find out what is wrong with an installation, and say what to do about it.

    Changes nothing. Exit code: 0 nothing found, 1 something is broken, 3 warnings only.
    """
    with reported():
        outcomes = asyncio.run(_examined(target_of(kubeconfig, context), nats, SystemClock()))
    if output == "json":
        click.echo(as_json(outcomes))
    else:
        for line in lines(outcomes):
            click.echo(line)
    sys.exit(exit_code(outcomes))


async def _examined(target: Target, nats: str, clock: Clock) -> Sequence[Outcome]:
    """What the last two looks agree on. One look is enough where it finds nothing, a third one is taken where the
    second finds something new."""
    progress = Progress(clock)
    async with _places(target, nats, clock) as places:
        with progress.step("Look at the installation"):
            looks = [examine(await look(places))]
        while keys(looks[-1]) and len(looks) < MOST_LOOKS:
            with progress.step("Look again: what is wrong for a moment only is not said"):
                await clock.sleep(AGAIN_SECONDS)
                looks.append(examine(await look(places)))
            if keys(looks[-1]) <= keys(looks[-2]):
                break
        return looks[0] if len(looks) == 1 else confirmed(looks[-2], looks[-1])


@asynccontextmanager
async def _places(target: Target, nats: str, clock: Clock) -> AsyncGenerator[Places]:
    url = connection.nats_url_of(nats, target.kubeconfig)
    local = connection.set_of(target.kubeconfig)
    async with open_api(target) as api:
        if not url:
            yield Places(api, None, None, local, clock)
            return
        async with open_bus(url, target.kubeconfig) as bus:
            yield Places(api, bus, connection.bus_target_of(url, target.kubeconfig), local, clock)
