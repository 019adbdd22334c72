"""`flotilla get`: a workload as a tree, another object as a card, once or live."""

import asyncio
import contextlib

import click
import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from flotilla_cli.connection import Target, open_api, open_bus, reported
from flotilla_cli.options import Reach, object_argument, reach_options
from flotilla_cli.output import Screen
from flotilla_cli.tree.live import LiveView, ObjectGone
from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import Clock, SystemClock
from flotilla_insight.bus.connection import connected
from flotilla_insight.published import last_why
from flotilla_insight.views import view_of

NO_REASONS = (
    "the bus does not answer, so the service's own reasons are missing; what follows is derived from the objects"
)
BUS_SECONDS = 1.0
"""Seconds that a tree waits for the reasons from the bus before it is shown without them."""

REFRESH_SECONDS = 0.25
"""Seconds between two drawings; people cannot read faster."""

LINES_AROUND = 12
"""Lines of a terminal that are not for pods; the revisions share the rest."""


class GetOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The user's options."""

    resource: Resource
    namespace: str
    name: str
    output: str | None
    everything: bool


@click.command()
@object_argument
@reach_options
@click.option("-w", "--watch", is_flag=True, help="Watch for changes.")
@click.option("--all", "everything", is_flag=True, help="Show all pods, even if they do not fit on the screen.")
@click.option("-o", "--output", type=click.Choice(["json"]), help="One JSON document; with -w one per line.")
def get(words: tuple[str, ...], reach: Reach, watch: bool, everything: bool, output: str | None) -> None:
    """Show an object: a workload's revisions and pods, a job's parts, and what it waits for."""
    resource, namespace, name = reach.place(words)
    options = GetOptions(resource=resource, namespace=namespace, name=name, output=output, everything=everything)
    with reported(), contextlib.suppress(KeyboardInterrupt):
        try:
            asyncio.run(_get(options, reach.target, reach.url, watch=watch))
        except ObjectGone as error:
            raise click.ClickException(f"{options.resource.kind} {place(options)} is gone") from error


async def _get(options: GetOptions, target: Target, nats_url: str, *, watch: bool) -> None:
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        api = await stack.enter_async_context(open_api(target))
        bus = await stack.enter_async_context(open_bus(nats_url, target.kubeconfig)) if nats_url else None
        live = LiveView(api, clock, view_of(options.resource), options.namespace, options.name)
        await live.load()
        await _hear(live, options, bus, clock)
        screen = Screen(json=options.output == "json")
        if not watch:
            limit = max(screen.height, LINES_AROUND) if screen.height and not options.everything else 0
            screen.once(lambda: live.drawing(clock.now(), limit), live.view())
            return
        if bus is not None:
            await bus.subscribe(subjects.why(options.resource, options.namespace, options.name), live.on_why)
        await _watch(live, screen, clock, everything=options.everything)


def place(options: GetOptions) -> str:
    """Return namespace and name as people write them."""
    return f"{options.namespace}/{options.name}" if options.namespace else options.name


async def _hear(live: LiveView, options: GetOptions, bus: NatsBus | None, clock: Clock) -> None:
    """Read the reasons if the bus has them soon; the tree is useful without them, too."""
    if bus is None:
        return
    try:
        async with asyncio.timeout(BUS_SECONDS):
            await connected(bus, clock, BUS_SECONDS)
            live.why = await last_why(bus, options.resource, options.namespace, options.name)
    except (BusError, TimeoutError):
        click.echo(NO_REASONS + (f" ({bus.trouble})" if bus.trouble else ""), err=True)


async def _watch(live: LiveView, screen: Screen, clock: Clock, *, everything: bool) -> None:
    def drawn() -> RenderableType:
        if not screen.height:
            return live.drawing(clock.now())
        room = 0 if everything else max(screen.height - LINES_AROUND, 5) // live.parts
        stale = Text(f"stale: {live.trouble}" if live.trouble else "", style="red")
        return Group(live.drawing(clock.now(), room), stale)

    async def draw() -> None:
        with screen:
            while True:
                screen.again(drawn, live.view())
                await live.changed.wait()
                live.changed.clear()
                await clock.sleep(REFRESH_SECONDS)

    gone = False
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(live.keep())
            group.create_task(draw())
    except* ObjectGone:
        gone = True
    if gone:
        raise ObjectGone
