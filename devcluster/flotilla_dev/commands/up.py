"""`flotilla up`: starts a local cluster by `cluster.up`, and shows an in-place update."""

import shutil
import sys
from pathlib import Path

import click
import msgspec
from rich.console import Console

from flotilla_cli.local import ClusterError, LocalCluster, default_state_dir
from flotilla_cli.output import Progress
from flotilla_common.clock import Clock, SystemClock
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_dev.cluster import demo
from flotilla_dev.cluster import state as folders
from flotilla_dev.cluster import up as work
from flotilla_dev.cluster.access import admin
from flotilla_dev.cluster.processes import Processes
from flotilla_dev.cluster.services import console_url
from flotilla_dev.commands.options import LOG_WIDTH, completed, state_folder, state_option


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
    options = work.UpOptions(
        nodes=nodes,
        bare=bare,
        real_nodes=real_nodes or 0,
        assets=assets.resolve() if assets else None,
        apiserver_port=port or 0,
        nats_port=nats_port or 0,
        webhook_port=webhook_port or 0,
    )
    completed(_up(state_folder(state), options, demo))


async def _up(folder: Path, options: work.UpOptions, demo_wanted: bool | None) -> None:
    clock = SystemClock()
    console = Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else LOG_WIDTH)
    folders.claim(folder)
    with folders.only_one(folder):
        try:
            started = await work.start(folder, options, clock, Progress(clock, console))
        except (ClusterError, ApiError, Unreachable) as error:
            raise _half_way(error, folder) from error
        if demo_wanted or (demo_wanted is None and not started.demo_done and not started.bare):
            await _demo(started, clock, console)
            folders.write(folder, msgspec.structs.replace(started, demo_done=True))
    _what_next(started, folder)


def _half_way(error: Exception, folder: Path) -> ClusterError:
    """Return the error that stopped `up`, with advice on the part of the cluster that runs already."""
    if not Processes(folder).running():
        return ClusterError(str(error))
    return ClusterError(
        f"{error}\nPart of the cluster runs already: `flotilla up{_state_option(folder)}` goes on from there,"
        f" `flotilla down{_state_option(folder)}` removes it."
    )


def _state_option(folder: Path) -> str:
    """Return the option that selects this state folder; empty for the default one."""
    return "" if folder == default_state_dir().absolute() else f" --state {folder}"


async def _demo(started: LocalCluster, clock: Clock, console: Console) -> None:
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


def _what_next(started: LocalCluster, folder: Path) -> None:
    option = _state_option(folder)
    used = ("kubectl", "helm") if started.bare else ("kubectl",)
    homes = {"flotilla": Path(sys.executable).parent, **{name: Path(started.programs[name]).parent for name in used}}
    missing = [str(home) for name, home in homes.items() if not shutil.which(name)]
    path = f"  export PATH={':'.join(missing)}:$PATH\n" if missing else ""
    page = "" if started.bare else f"The console, for one session in a browser:\n\n  {console_url(started, folder)}\n\n"
    click.echo(
        f"\nThe cluster is running. Use it with:\n\n  export KUBECONFIG={started.kubeconfig}\n{path}\n"
        f"{page}"
        "Try next:\n\n"
        f"{demo.TRY_CHART.format(option=option) if started.bare else demo.TRY_NEXT}"
        f"  flotilla status{option}\n"
        f"  flotilla down{option}     # stops everything, leaves nothing behind\n"
    )
