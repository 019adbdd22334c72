"""`flotilla bundle`: all published records about one object, in one file to send or to plan again."""

import asyncio
from pathlib import Path
from typing import Any

import click

from flotilla_cli.bundle.capture import Capture, NothingPublished
from flotilla_cli.bundle.records import Bundle, write
from flotilla_cli.connection import namespace_of, open_bus, reported, required_nats_url, target_of
from flotilla_cli.controllers import controller_of
from flotilla_cli.options import bus_option, find_object, namespace_option, object_argument
from flotilla_common.clock import SystemClock, SystemEntropy
from flotilla_common.control.spec import ControllerSpec
from flotilla_insight.bus.connection import connected


@click.command()
@object_argument
@namespace_option
@bus_option
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Output file; default: KIND-NAME.bundle.jsonl.",
)
@click.option(
    "-w", "--seconds", type=click.FloatRange(min=0), default=0, help="Continue recording for this many seconds."
)
def bundle(words: tuple[str, ...], namespace: str, nats: str, output: Path | None, seconds: float) -> None:
    """Record a workload for support: its objects, what was written for it, and why.

    Values of environment variables, commands and arguments are replaced by tokens. Ctrl-C ends the recording early.
    """
    resource, name = find_object(words)
    kind = controller_of(resource)
    url = required_nats_url(nats)
    namespace = namespace_of(namespace, target_of("", "")) if resource.namespaced else ""
    path = output or Path(f"{resource.kind.lower()}-{name}.bundle.jsonl")
    if not path.absolute().parent.is_dir():  # a recording may take long, and must not be lost at its end
        raise click.BadParameter(f"there is no folder {path.absolute().parent}", param_hint="--output")
    with reported():
        recorded = asyncio.run(_record(url, kind, namespace, name, seconds))
    path.write_bytes(write(recorded))
    click.echo(_summary(recorded, path))


async def _record(url: str, kind: ControllerSpec[Any, Any], namespace: str, name: str, seconds: float) -> Bundle:
    clock = SystemClock()
    async with open_bus(url) as bus:
        await connected(bus, clock)
        try:
            return await Capture(bus, clock, SystemEntropy(), kind, namespace, name).run(seconds)
        except NothingPublished:
            what = f"{kind.resource.kind.lower()} {f'{namespace}/{name}' if namespace else name}"
            raise click.ClickException(f"the bus has no {what}: see flotilla explain") from None


def _summary(recorded: Bundle, path: Path) -> str:
    seconds = (recorded.end - recorded.begin).total_seconds()
    note = "" if recorded.header.planning else "; no service published its settings, a replay will use the defaults"
    return (
        f"{path}: {len(recorded.known)} stored messages, {len(recorded.heard)} received in {seconds:.0f}s, "
        f"{recorded.header.redacted} texts replaced{note}"
    )
