"""`flotilla tail`: what all services see, do and say, live, in the order in which the bus carries it."""

import asyncio
import contextlib
import sys

import click
import msgspec

from flotilla_cli.connection import bus_option, connected, open_bus, reported, required_nats_url
from flotilla_cli.traffic.filters import matches
from flotilla_cli.traffic.lines import Line, Reader
from flotilla_common.bus.interface import Message
from flotilla_common.clock import Clock, SystemClock

STREAMS = ("kube", "act", "why")
BACKLOG = 10_000
"""Lines that wait for a slow terminal; beyond it lines are dropped, and their number is said."""

_COLOURS = {"kube": "blue", "act": "green", "why": "yellow", "heartbeat": "magenta"}
_WIDTHS = {"service": 9, "object": 44, "what": 16}


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for."""

    pattern: str
    namespace: str
    streams: tuple[str, ...]
    count: int
    json: bool


@click.command()
@click.argument("pattern", metavar="[FILTER]", default="")
@click.option("-n", "--namespace", default="", help="Only objects of this namespace.")
@bus_option
@click.option("--only", type=click.Choice([*STREAMS, "heartbeat"]), multiple=True, help="Only this stream; repeatable.")
@click.option("--heartbeats", is_flag=True, help="Heartbeats too.")
@click.option("--count", type=click.IntRange(min=1), help="End after so many lines.")
@click.option("-o", "--output", type=click.Choice(["json"]), help="One JSON document per line.")
def tail(
    pattern: str,
    namespace: str,
    nats: str,
    only: tuple[str, ...],
    heartbeats: bool,
    count: int | None,
    output: str | None,
) -> None:
    """Follow bus traffic: changes, writes with cause and outcome, plans with reasons.

    FILTER is a glob over names: web-*, pod, pod/web-1, team-a/web-1; it takes in what is done on an object's behalf.
    """
    url = required_nats_url(nats)
    streams = only or STREAMS + (("heartbeat",) if heartbeats else ())
    wish = Wish(pattern=pattern, namespace=namespace, streams=streams, count=count or 0, json=output == "json")
    with reported(), contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_tail(wish, url, SystemClock()))


async def _tail(wish: Wish, url: str, clock: Clock) -> None:
    queue: asyncio.Queue[Line] = asyncio.Queue(BACKLOG)
    reader, lost = Reader(), 0

    def hear(message: Message) -> None:
        nonlocal lost
        line = reader.read(message, clock.now())
        elsewhere = line is not None and wish.namespace and line.namespace != wish.namespace
        if line is None or elsewhere or not matches(line, wish.pattern):
            return
        try:
            queue.put_nowait(line)
        except asyncio.QueueFull:
            lost += 1

    async with open_bus(url) as bus:
        for stream in wish.streams:
            await bus.subscribe(f"{stream}.v1.>", hear)
        await connected(bus, clock)
        if sys.stderr.isatty():
            click.echo("following the bus; Ctrl-C ends it", err=True)
        shown = 0
        while not wish.count or shown < wish.count:
            line = await queue.get()
            click.echo(msgspec.json.encode(line).decode() if wish.json else row(line))
            shown += 1
            if lost:
                click.echo(f"… {lost} lines were dropped: the terminal is too slow", err=True)
                lost = 0


def row(line: Line) -> str:
    """The line in columns: time, service, object, what, cause, outcome."""
    where = f"{line.namespace}/" if line.namespace else ""
    columns = [
        click.style(f"{line.at.astimezone():%H:%M:%S.%f}"[:-3], dim=True),
        click.style(f"{line.service:<{_WIDTHS['service']}}", fg=_COLOURS[line.stream]),
        f"{line.kind} {where}{line.name}".ljust(_WIDTHS["object"]),
        line.what.ljust(_WIDTHS["what"]),
        line.cause,
        _outcome(line),
    ]
    return "  ".join(column for column in columns if column)


def _outcome(line: Line) -> str:
    bad = line.stream == "act" and not line.outcome.startswith("Ok ")
    text = f"→ {line.outcome}" if line.outcome else ""
    return click.style(text, fg="red") if bad else click.style(text, dim=True) if text else ""
