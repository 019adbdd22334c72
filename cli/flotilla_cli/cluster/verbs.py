"""The verbs `up`, `down` and `status`: options in, words out. The work is in `up`, `demo` and `status`."""

import asyncio
import shutil
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
from rich.console import Console
from rich.table import Table

from flotilla_cli.cluster import demo, local_set
from flotilla_cli.cluster import status as health
from flotilla_cli.cluster import up as work
from flotilla_cli.cluster.admin import admin
from flotilla_cli.cluster.errors import ClusterError
from flotilla_cli.cluster.layout import default_state_dir
from flotilla_cli.cluster.local_set import LocalSet
from flotilla_cli.cluster.process import Records
from flotilla_cli.cluster.progress import Progress
from flotilla_common.clock import Clock, SystemClock
from flotilla_common.kube.interface import ApiError, Unreachable

Result = TypeVar("Result")
LOG_WIDTH = 160  # columns where there is no terminal to ask

state_option = click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    help="The state folder (FLOTILLA_STATE).  [default: ~/.local/state/flotilla/up]",
)


@click.command()
@state_option
@click.option("--nodes", type=click.IntRange(0, 2000), help="How many fake nodes.  [default: 10, or 0 with real nodes]")
@click.option("--real-nodes", type=click.IntRange(1, 20), help="How many nodes with containerd and kubelet (root).")
@click.option(
    "--assets",
    envvar="FLOTILLA_ASSETS",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="A folder with etcd, kube-apiserver, …, kwok, nats-server (FLOTILLA_ASSETS).",
)
@click.option("--port", type=click.IntRange(1024, 65535), help="The apiserver's port.  [default: a free one]")
@click.option("--nats-port", type=click.IntRange(1024, 65535), help="NATS's port.  [default: a free one]")
@click.option("--webhook-port", type=click.IntRange(1024, 65535), help="The webhook's port.  [default: a free one]")
@click.option("--bare", is_flag=True, help="The cluster only, with real nodes and without Flotilla: for its chart.")
@click.option("--demo/--no-demo", default=None, help="Show the in-place update.  [default: the first time]")
def up(
    state: Path | None,
    nodes: int | None,
    real_nodes: int | None,
    bare: bool,
    assets: Path | None,
    port: int | None,
    nats_port: int | None,
    webhook_port: int | None,
    demo: bool | None,
) -> None:
    """Start a local cluster with Flotilla, and show an in-place update.

    Safe to repeat: what runs is left alone, what died is started again.
    """
    if bare and (demo or not real_nodes):
        raise click.UsageError("--bare goes with --real-nodes, and has nothing to show in a demo")
    wishes = work.Wishes(
        nodes=nodes,
        bare=bare,
        real_nodes=real_nodes or 0,
        assets=assets.resolve() if assets else None,
        apiserver_port=port or 0,
        nats_port=nats_port or 0,
        webhook_port=webhook_port or 0,
    )
    _run(_up(_folder(state), wishes, demo))


@click.command()
@state_option
@click.option("--keep", is_flag=True, help="Keep the state folder: `flotilla up` continues from it.")
def down(state: Path | None, keep: bool) -> None:
    """Stop the local cluster and remove what it left."""
    folder = _folder(state)
    if not local_set.is_ours(folder):
        click.echo(f"There is no local set in {folder}.")
        return
    _run(_down(folder, keep=keep))


@click.command()
@state_option
@click.option("-o", "--output", type=click.Choice(["json"]), help="Print it as JSON.")
def status(state: Path | None, output: str | None) -> None:
    """Show the local cluster's processes and their health."""
    folder = _folder(state)
    lines = _run(health.check(folder, SystemClock()))
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(lines), indent=2).decode())
    elif not lines:
        click.echo(f"There is no local set in {folder}. `flotilla up` starts one.")
    else:
        _print_status(lines)
    sys.exit(0 if lines and all(line.healthy for line in lines) else 1)


def _folder(state: Path | None) -> Path:
    return (state or default_state_dir()).absolute()


def _run(work_to_do: Coroutine[Any, Any, Result]) -> Result:
    try:
        return asyncio.run(work_to_do)
    except (ApiError, Unreachable) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error.filename or 'The system'}: {error.strerror or error}") from error


async def _up(folder: Path, wishes: work.Wishes, demo_wanted: bool | None) -> None:
    clock = SystemClock()
    console = Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else LOG_WIDTH)
    local_set.claim(folder)
    with local_set.only_one(folder):
        try:
            started = await work.start(folder, wishes, clock, Progress(clock, console))
        except (ClusterError, ApiError, Unreachable) as error:
            raise _half_way(error, folder) from error
        if demo_wanted or (demo_wanted is None and not started.demo_done and not started.bare):
            await _demo(started, clock, console)
            local_set.write(folder, msgspec.structs.replace(started, demo_done=True))
    _what_next(started, folder)


def _half_way(error: Exception, folder: Path) -> ClusterError:
    """What stopped `up`, and what to do about the part of the set that runs already."""
    if not Records(folder).running():
        return ClusterError(str(error))
    return ClusterError(
        f"{error}\nPart of the set runs already: `flotilla up{_state_option(folder)}` goes on from there,"
        f" `flotilla down{_state_option(folder)}` removes it."
    )


def _state_option(folder: Path) -> str:
    """What has to be said to mean this state folder."""
    return "" if folder == default_state_dir().absolute() else f" --state {folder}"


async def _demo(started: LocalSet, clock: Clock, console: Console) -> None:
    async with admin(Path(started.kubeconfig), clock) as api:
        with demo.shown(console, f"CloneSet {demo.NAME}: {demo.REPLICAS} pods of {demo.BEFORE}") as show:
            before = await demo.create(api, clock, show)
        with demo.shown(console, f"Its image becomes {demo.AFTER}, in place") as show:
            after = await demo.update(api, clock, show)
    console.print("\n[bold]Before and after[/]")
    console.print(demo.comparison(before, after))
    problems = demo.broken_promises(before, after)
    if problems:
        raise ClusterError("The update was not in place:\n  " + "\n  ".join(problems))
    console.print(f"[green]✓[/] All {demo.REPLICAS} pods kept their name, uid, node and IP, and run {demo.AFTER}.")


async def _down(folder: Path, *, keep: bool) -> None:
    clock = SystemClock()
    progress = Progress(clock)
    with local_set.only_one(folder):
        with progress.step("Stop the local set") as say:
            count = await work.stop_all(folder, clock, say)
        if not keep:
            shutil.rmtree(folder)
    progress.note(f"{count} processes stopped; {folder} {'kept' if keep else 'removed'}.")


def _what_next(started: LocalSet, folder: Path) -> None:
    option = _state_option(folder)
    used = ("kubectl", "helm") if started.bare else ("kubectl",)
    homes = {"flotilla": Path(sys.executable).parent, **{name: Path(started.programs[name]).parent for name in used}}
    missing = [str(home) for name, home in homes.items() if not shutil.which(name)]
    path = f"  export PATH={':'.join(missing)}:$PATH\n" if missing else ""
    click.echo(
        f"\nThe set is running. Use it with:\n\n  export KUBECONFIG={started.kubeconfig}\n{path}\n"
        "Try next:\n\n"
        f"{demo.TRY_CHART.format(option=option) if started.bare else demo.TRY_NEXT}"
        f"  flotilla status{option}\n"
        f"  flotilla down{option}     # stops everything, leaves nothing behind\n"
    )


def _print_status(lines: list[health.Health]) -> None:
    made = Table("PROCESS", "PID", "STATE", "HEALTH", "LOG", box=None, padding=(0, 3, 0, 0))
    for line in lines:
        state = "[green]up[/]" if line.running else "[red]down[/]"
        made.add_row(line.name, str(line.pid or "-"), state, line.detail, line.log)
    Console(width=None if sys.stdout.isatty() else LOG_WIDTH).print(made)
