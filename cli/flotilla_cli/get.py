"""`flotilla get`: a workload as a tree, another object as a card, once or live."""

import asyncio
import contextlib

import click
import msgspec
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from flotilla_cli.connection import Target, connected, open_api, open_bus, reported
from flotilla_cli.options import Reach, object_argument, reach_options
from flotilla_cli.plain import plain
from flotilla_cli.tree.live import Gone, LiveView
from flotilla_cli.tree.why import last_why
from flotilla_cli.views import view_of
from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import Clock, SystemClock

NO_REASONS = "the bus does not answer, so the service's own reasons are missing; what follows is told from the objects"
BUS_SECONDS = 1.0
"""How long a tree waits for the reasons from the bus before it does without them."""

REFRESH_SECONDS = 0.25
"""Between two drawings: more often than that nobody can read."""

LINES_AROUND = 12
"""Lines of a terminal that are not for pods; the rest is shared by the revisions."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for."""

    resource: Resource
    namespace: str
    name: str
    output: str | None
    everything: bool


@click.command()
@object_argument
@reach_options
@click.option("-w", "--watch", is_flag=True, help="Keep showing it as it changes.")
@click.option("--all", "everything", is_flag=True, help="Every pod, even if they do not fit on the screen.")
@click.option("-o", "--output", type=click.Choice(["json"]), help="One JSON document; with -w one per line.")
def get(words: tuple[str, ...], reach: Reach, watch: bool, everything: bool, output: str | None) -> None:
    """Show an object: a workload's revisions and pods, a job's parts, and what it waits for."""
    resource, namespace, name = reach.place(words)
    wish = Wish(resource=resource, namespace=namespace, name=name, output=output, everything=everything)
    with reported(), contextlib.suppress(KeyboardInterrupt):
        try:
            asyncio.run(_get(wish, reach.target, reach.url, watch=watch))
        except Gone as error:
            raise click.ClickException(f"{wish.resource.kind} {place(wish)} is gone") from error


async def _get(wish: Wish, target: Target, nats_url: str, *, watch: bool) -> None:
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        api = await stack.enter_async_context(open_api(target))
        bus = await stack.enter_async_context(open_bus(nats_url, target.kubeconfig)) if nats_url else None
        live = LiveView(api, clock, view_of(wish.resource), wish.namespace, wish.name)
        await live.load()
        await _hear(live, wish, bus, clock)
        show = _Screen(wish, clock)
        if not watch:
            show.once(live)
            return
        if bus is not None:
            await bus.subscribe(subjects.why(wish.resource, wish.namespace, wish.name), live.hear)
        await _watch(live, show, clock)


def place(wish: Wish) -> str:
    """The object as people name it."""
    return f"{wish.namespace}/{wish.name}" if wish.namespace else wish.name


async def _hear(live: LiveView, wish: Wish, bus: NatsBus | None, clock: Clock) -> None:
    """The reasons, if the bus has them soon: the tree is worth having without, but says less."""
    if bus is None:
        return
    try:
        async with asyncio.timeout(BUS_SECONDS):
            await connected(bus, clock, BUS_SECONDS)
            live.why = await last_why(bus, wish.resource, wish.namespace, wish.name)
    except (BusError, TimeoutError):
        click.echo(NO_REASONS + (f" ({bus.trouble})" if bus.trouble else ""), err=True)


async def _watch(live: LiveView, show: "_Screen", clock: Clock) -> None:
    async def draw() -> None:
        with show:
            while True:
                show.again(live)
                await live.changed.wait()
                live.changed.clear()
                await clock.sleep(REFRESH_SECONDS)

    gone = False
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(live.keep())
            group.create_task(draw())
    except* Gone:
        gone = True
    if gone:
        raise Gone


class _Screen:
    """Where trees are shown: a terminal that is redrawn, plain text, or JSON."""

    def __init__(self, wish: Wish, clock: Clock) -> None:
        self._wish = wish
        self._clock = clock
        self._console = Console(highlight=False)
        self._terminal = self._console.is_terminal and wish.output is None
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
        self._last = ""

    def once(self, live: LiveView) -> None:
        """Show the tree and be done."""
        if self._terminal:
            limit = 0 if self._wish.everything else max(self._console.height, LINES_AROUND)
            self._console.print(live.drawing(self._clock.now(), limit))
        else:
            click.echo(self._text(live), nl=False)

    def again(self, live: LiveView) -> None:
        """Show the tree in place of the one before; plain text and JSON only if it is another."""
        if self._terminal:
            self._live.update(self._drawing(live), refresh=True)
        elif (text := self._text(live)) != self._last:
            self._last = text
            click.echo(text if self._wish.output else f"{text}\n", nl=False)

    def __enter__(self) -> None:
        if self._terminal:
            self._live.start()

    def __exit__(self, *_: object) -> None:
        if self._terminal:
            self._live.stop()

    def _drawing(self, live: LiveView) -> Group:
        room = max(self._console.height - LINES_AROUND, 5) // live.parts
        drawing = live.drawing(self._clock.now(), 0 if self._wish.everything else room)
        return Group(drawing, Text(f"stale: {live.trouble}" if live.trouble else "", style="red"))

    def _text(self, live: LiveView) -> str:
        if self._wish.output == "json":
            return msgspec.json.encode(live.view()).decode() + "\n"
        return plain(live.drawing(self._clock.now()))
