"""`flotilla tail`: everything that services see, do and report, in time order, live or from the past on."""

import asyncio
import contextlib
import sys
from datetime import timedelta

import click
import msgspec

from flotilla_cli.connection import open_bus, reported, required_nats_url
from flotilla_cli.options import bus_option, since_option
from flotilla_common.api.resources import POD
from flotilla_common.bus.interface import Message
from flotilla_common.bus.streams import shards_of
from flotilla_common.clock import Clock, SystemClock
from flotilla_insight import traffic
from flotilla_insight.bus.connection import connected
from flotilla_insight.traffic import Line, LineReader, matches

STREAMS = ("kube", "act", "why")
BACKLOG = 10_000
"""Lines buffered for a slow terminal; beyond that lines are dropped and counted."""

_COLOURS = {"kube": "blue", "act": "green", "why": "yellow", "heartbeat": "magenta"}
_WIDTHS = {"service": 9, "object": 44, "what": 16}


class TailOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The user's options."""

    pattern: str
    namespace: str
    streams: tuple[str, ...]
    count: int
    json: bool
    since: timedelta | None = None  # None: only what comes
    follow: bool = True


@click.command()
@click.argument("pattern", metavar="[FILTER]", default="")
@click.option("-n", "--namespace", default="", help="Only objects of this namespace.")
@bus_option
@click.option("--only", type=click.Choice([*STREAMS, "heartbeat"]), multiple=True, help="Only this stream; repeatable.")
@click.option("--heartbeats", is_flag=True, help="Include heartbeats.")
@since_option("Print past records from then on first.")
@click.option("--no-follow", is_flag=True, help="With --since: print past records only, do not follow.")
@click.option("--count", type=click.IntRange(min=1), help="Stop after this many lines.")
@click.option("-o", "--output", type=click.Choice(["json"]), help="One JSON document per line.")
def tail(
    pattern: str,
    namespace: str,
    nats: str,
    only: tuple[str, ...],
    heartbeats: bool,
    since: timedelta | None,
    no_follow: bool,
    count: int | None,
    output: str | None,
) -> None:
    """Follow bus traffic: changes, writes with cause and outcome, plans with reasons.

    FILTER is a glob over names: web-*, pod, pod/web-1, team-a/web-1; it also matches what is done for an object.
    """
    if no_follow and since is None:
        raise click.UsageError("--no-follow needs --since")
    url = required_nats_url(nats)
    streams = only or STREAMS + (("heartbeat",) if heartbeats else ())
    options = TailOptions(
        pattern=pattern,
        namespace=namespace,
        streams=streams,
        count=count or 0,
        json=output == "json",
        since=since,
        follow=not no_follow,
    )
    with reported(), contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_tail(options, url, SystemClock()))


async def _tail(options: TailOptions, url: str, clock: Clock) -> None:
    lines = _Lines(options, clock)
    async with open_bus(url) as bus:
        live = (
            options.streams
            if options.since is None
            else [one for one in options.streams if not traffic.stored_streams([one])]
        )
        for stream in live:
            await bus.subscribe(f"{stream}.v1.>", lines.on_message)
        await connected(bus, clock)
        if options.since is not None:
            names = traffic.stored_streams(options.streams, len(await shards_of(bus, POD)))
            await traffic.read_since(bus, names, clock.now() - options.since, lines.on_message)
        if options.follow and sys.stderr.isatty():
            click.echo("following the bus, Ctrl-C to stop", err=True)
        await lines.show()


class _Lines:
    """Lines to be shown, between the bus and the terminal."""

    def __init__(self, options: TailOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._queue: asyncio.Queue[Line] = asyncio.Queue(BACKLOG if options.since is None else 0)
        self._reader = LineReader()
        self._lost = 0

    def on_message(self, message: Message) -> None:
        """Queue the message's line if it matches."""
        line = self._reader.read(message, traffic.stored_at(message, self._clock.now()))
        elsewhere = line is not None and self._options.namespace and line.namespace != self._options.namespace
        if line is None or elsewhere or not matches(line, self._options.pattern):
            return
        try:
            self._queue.put_nowait(line)
        except asyncio.QueueFull:
            self._lost += 1

    async def show(self) -> None:
        """Print lines up to the requested number, or until the queue is empty when not following."""
        shown = 0
        while (not self._options.count or shown < self._options.count) and (
            self._options.follow or not self._queue.empty()
        ):
            line = await self._queue.get()
            click.echo(msgspec.json.encode(line).decode() if self._options.json else row(line))
            shown += 1
            if self._lost:
                click.echo(f"… {self._lost} lines were dropped: the terminal is too slow", err=True)
                self._lost = 0


def row(line: Line) -> str:
    """Format the line in columns: time, service, object, what, cause, outcome."""
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
    bad = line.stream == "act" and line.message.get("outcome") != "Ok"
    text = f"→ {line.outcome}" if line.outcome else ""
    return click.style(text, fg="red") if bad else click.style(text, dim=True) if text else ""
