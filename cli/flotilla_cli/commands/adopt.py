"""`flotilla adopt`: migrates a cluster from OpenKruise to Flotilla, and back."""

import asyncio

import click

from flotilla_cli.adopt.apply import carry_out
from flotilla_cli.adopt.discover import Found, discover
from flotilla_cli.adopt.plan import plan
from flotilla_cli.adopt.report import report, survey
from flotilla_cli.adopt.rollback import runs_out
from flotilla_cli.adopt.rollback import undo as way_back
from flotilla_cli.adopt.steps import MigrationPlan
from flotilla_cli.connection import Target, open_api, reported, target_of
from flotilla_cli.options import cluster_options
from flotilla_common.clock import Clock, SystemClock
from flotilla_common.kube.interface import Api

RUN_OUT_SECONDS = 50.0
"""Seconds to wait for terminating pods (30 s of grace) and for unrenewed leases to expire (15 s by default).

Running services keep renewing their leases.
"""


@click.command()
@cluster_options
@click.option("--dry-run", is_flag=True, help="Print the plan without changing anything.")
@click.option("--undo", is_flag=True, help="Restore OpenKruise and everything else as it was before.")
@click.option(
    "--leave-unserved",
    is_flag=True,
    help="Migrate even if there are objects of kinds that Flotilla does not serve yet.",
)
def adopt(kubeconfig: str, context: str, dry_run: bool, undo: bool, leave_unserved: bool) -> None:
    """Migrate a cluster from OpenKruise: stop it, and prepare for Flotilla.

    CRDs, objects, revisions and pods stay as they are. Safe to repeat. Next: `flotilla install`, or the chart with
    `helm install --take-ownership`.
    """
    if undo and leave_unserved:
        raise click.UsageError("--leave-unserved cannot be combined with --undo")

    async def run(target: Target) -> None:
        clock = SystemClock()
        async with open_api(target) as api:
            found = await discover(api, clock.now())
            if undo and not dry_run and runs_out(found):
                click.echo(f"waiting up to {RUN_OUT_SECONDS:.0f} s for remaining pods and leases of Flotilla")
                found = await _look_back(api, clock)
            made = way_back(found) if undo else plan(found, leave_unserved=leave_unserved)
            if dry_run and not undo:
                for line in report(await survey(api, found)):
                    click.echo(line)
            _introduce(made)
            if dry_run:
                _list(made)
            else:
                await carry_out(api, clock, made.steps, click.echo)

    with reported():
        asyncio.run(run(target_of(kubeconfig, context)))


async def _look_back(api: Api, clock: Clock) -> Found:
    """Look at the cluster again until the rest of Flotilla has run out.

    Pods of the chart end after its removal, and services that were killed leave leases, which expire.
    """
    deadline = clock.monotonic() + RUN_OUT_SECONDS
    while runs_out(found := await discover(api, clock.now())) and clock.monotonic() < deadline:
        await clock.sleep(1.0)
    return found


def _introduce(made: MigrationPlan) -> None:
    for note in made.notes:
        click.echo(f"note: {note}")
    if made.refused:
        raise click.ClickException("; ".join(made.refused))
    if not made.steps:
        click.echo("nothing to do")


def _list(made: MigrationPlan) -> None:
    for number, step in enumerate(made.steps, 1):
        click.echo(f"{number}. {step.what}")
        for write in step.writes:
            click.echo(f"     {write.verb} {write.place}")
