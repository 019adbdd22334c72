"""`flotilla adopt`: take a cluster over from OpenKruise, and give it back."""

import asyncio

import click

from flotilla_cli.adopt.carry_out import carry_out
from flotilla_cli.adopt.found import look
from flotilla_cli.adopt.helm import Release
from flotilla_cli.adopt.plan import plan
from flotilla_cli.adopt.steps import Plan
from flotilla_cli.adopt.undo import undo as way_back
from flotilla_cli.connection import Target, cluster_options, open_api, reported, target_of
from flotilla_cli.install.apply import InstallError
from flotilla_cli.install.rbac import NAMESPACE
from flotilla_common.clock import SystemClock


@click.command()
@cluster_options
@click.option("--dry-run", is_flag=True, help="Print the plan, and change nothing.")
@click.option("--undo", is_flag=True, help="Give the cluster back: everything as it was before, OpenKruise included.")
@click.option("--leave-unserved", is_flag=True, help="Even if objects exist of kinds that Flotilla does not serve yet.")
@click.option(
    "--release", default="", metavar="NAME", help="Make objects of the same names those of this helm release."
)
@click.option("--release-namespace", default=NAMESPACE, show_default=True, help="The namespace of that release.")
def adopt(
    kubeconfig: str,
    context: str,
    dry_run: bool,
    undo: bool,
    leave_unserved: bool,
    release: str,
    release_namespace: str,
) -> None:
    """Take a cluster over from OpenKruise: stop it, and make room for Flotilla.

    CRDs, objects, revisions and pods stay as they are. Safe to repeat. Next: `flotilla install` or the chart.
    """
    if undo and (release or leave_unserved):
        raise click.UsageError("--release and --leave-unserved do not go with --undo")
    named = Release(release, release_namespace) if release else None

    async def run(target: Target) -> None:
        clock = SystemClock()
        async with open_api(target) as api:
            found = await look(api, clock.now())
            made = way_back(found) if undo else plan(found, named, leave_unserved=leave_unserved)
            _introduce(made)
            if dry_run:
                _list(made)
            else:
                await carry_out(api, clock, made.steps, click.echo)

    with reported():
        try:
            asyncio.run(run(target_of(kubeconfig, context)))
        except InstallError as error:
            raise click.ClickException(str(error)) from error


def _introduce(made: Plan) -> None:
    for note in made.notes:
        click.echo(f"note: {note}")
    if made.refused:
        raise click.ClickException("; ".join(made.refused))
    if not made.steps:
        click.echo("nothing to do")


def _list(made: Plan) -> None:
    for number, step in enumerate(made.steps, 1):
        click.echo(f"{number}. {step.what}")
        for write in step.writes:
            click.echo(f"     {write.verb} {write.place}")
