"""`flotilla plan -f FILE`: what an apply would do now, pod by pod and in which order. Nothing is written."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence

import click
import msgspec
from rich.console import Group

from flotilla_cli.connection import Target, namespace_of, open_api, open_bus, reported
from flotilla_cli.options import Reach, reach_options
from flotilla_cli.output import printed
from flotilla_cli.preview.render import render
from flotilla_common.bus.heartbeat import Heartbeat
from flotilla_common.bus.interface import BusError
from flotilla_common.clock import Clock, SystemClock
from flotilla_common.control.replay_controller import Planning
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api
from flotilla_insight.bus.connection import connected
from flotilla_insight.preview.dryrun import Applied, Refused, dry_run
from flotilla_insight.preview.manifest import Manifest, UnreadableManifest, Unsupported, read
from flotilla_insight.preview.preview import Preview, Reader, concerned
from flotilla_insight.preview.report import REFUSED, SKIPPED, UNCHANGED, Report
from flotilla_insight.published import LISTEN_SECONDS, listen

SAME, DIFFERENT, WRONG = 0, 1, 2
"""Exit codes, as those of `kubectl diff`."""


class PlanOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The user's options."""

    namespace: str
    given: bool  # on the command line
    server_side: bool


@click.command()
@click.option("-f", "--filename", "files", multiple=True, required=True, metavar="FILE", help="A file, a folder, or -.")
@reach_options
@click.option("--server-side", is_flag=True, help="Plan a kubectl apply --server-side.")
@click.option("--all", "everything", is_flag=True, help="Show all pods and all waves.")
@click.option("-o", "--output", type=click.Choice(["json"]), help="One JSON document.")
@click.pass_context
def plan(
    context: click.Context,
    files: tuple[str, ...],
    reach: Reach,
    server_side: bool,
    everything: bool,
    output: str | None,
) -> None:
    """Preview what `kubectl apply -f FILE` would do now, pod by pod and in which order. Nothing is written.

    Exit code 0: nothing would change; 1: something would; 2: a manifest is rejected, or an error occurred.
    """
    target, given = reach.target, reach.namespace
    options = PlanOptions(namespace=namespace_of(given, target), given=bool(given), server_side=server_side)
    try:
        found = [one for place in files for one in read(place)]
        with reported():
            reports = asyncio.run(_plan(found, options, target, reach.url))
    except (UnreadableManifest, click.ClickException, OSError) as error:
        click.echo(f"Error: {error}", err=True)
        context.exit(WRONG)
    if output == "json":
        click.echo(msgspec.json.encode(reports))
    else:
        printed(Group(*(render(report, everything=everything) for report in reports)))
    context.exit(_exit_code(reports))


def _exit_code(reports: list[Report]) -> int:
    verdicts = {report.verdict for report in reports}
    return WRONG if REFUSED in verdicts else DIFFERENT if verdicts - {UNCHANGED, SKIPPED} else SAME


async def _plan(
    found: Sequence[Manifest | Unsupported], options: PlanOptions, target: Target, nats: str
) -> list[Report]:
    """Return the reports in the order of the objects. The services' settings are read during the dry runs."""
    clock = SystemClock()
    kinds = {one.kind.resource for one in found if isinstance(one, Manifest)}
    plurals = {resource.plural for kind in kinds for resource in concerned(kind, Gates())}
    async with open_api(target) as api:
        (planning, words), tried = await asyncio.gather(
            settings_of(nats, target.kubeconfig, plurals, clock), _tried(api, found, options)
        )
        reader = Reader(api)
        reports = [
            one if isinstance(one, Report) else await Preview(reader, one, planning, clock).report() for one in tried
        ]
    return [_noted(report, words) for report in reports]


async def _tried(api: Api, found: Sequence[Manifest | Unsupported], options: PlanOptions) -> list[Applied | Report]:
    """Dry-run each manifest; a rejected or skipped one yields its report at once."""
    return [await _try(api, one, options) if isinstance(one, Manifest) else _skipped(one) for one in found]


async def _try(api: Api, one: Manifest, options: PlanOptions) -> Applied | Report:
    namespace = (one.namespace or options.namespace) if one.kind.resource.namespaced else ""
    if options.given and namespace not in ("", options.namespace):
        return _refused(one, namespace, f"the object's namespace is {namespace}, but -n is {options.namespace}")
    try:
        return await dry_run(api, one, namespace, server_side=options.server_side)
    except Refused as error:
        return _refused(one, namespace, str(error))


def _refused(one: Manifest, namespace: str, words: str) -> Report:
    return Report(kind=one.kind.name, namespace=namespace, name=one.name, verdict=REFUSED, words=words)


def _skipped(one: Unsupported) -> Report:
    kind, _, name = one.what.partition(" ")
    return Report(kind=kind, name=name, verdict=SKIPPED, words=one.why)


def _noted(report: Report, words: str) -> Report:
    """Add a note about settings that are not known, if they matter."""
    if not words or report.verdict in (REFUSED, SKIPPED):
        return report
    return msgspec.structs.replace(report, notes=(*report.notes, words))


async def settings_of(url: str, kubeconfig: str, plurals: set[str], clock: Clock) -> tuple[Mapping[str, Planning], str]:
    """Return the known settings by plural, and a text about the unknown. Waits for a heartbeat at most."""
    if not url:
        return {}, "no bus is known, so planning uses the default settings"
    found: dict[str, Planning] = {}

    def on_heartbeat(beat: Heartbeat) -> None:
        with contextlib.suppress(msgspec.MsgspecError):
            found.update(msgspec.convert(beat.planning, dict[str, Planning]))

    try:
        async with open_bus(url, kubeconfig) as bus:
            await connected(bus, clock)
            await listen(bus, on_heartbeat)
            deadline = clock.monotonic() + LISTEN_SECONDS
            while not plurals <= found.keys() and clock.monotonic() < deadline:
                await clock.sleep(0.05)
    except BusError as error:
        return found, f"the bus does not answer ({error}), so planning uses the default settings"
    silent = sorted(plurals - found.keys())
    words = f"no service published its settings for {', '.join(silent)}: planning uses the defaults"
    return found, words if silent else ""
