"""`flotilla install` and `flotilla uninstall`: Flotilla's CRDs, roles and webhook configurations on any cluster."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from flotilla_cli.connection import Target, open_api, reported, target_of
from flotilla_cli.install.apply import apply, established
from flotilla_cli.install.remove import STILL_THERE, custom_resources, prepare_removal, remove, withdraw
from flotilla_cli.options import cluster_options
from flotilla_common.api.documents import Json
from flotilla_common.clock import Clock, SystemClock
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api, ApiError
from flotilla_insight.installation.manifests import as_yaml, manifests, no_managed_fields
from flotilla_insight.installation.objects import get, name_of, title
from flotilla_insight.openkruise import LEADER, MANAGER, at_work

SHOWN = 20
"""Number of custom resources listed by name when they prevent a removal."""

_print_progress = partial(click.echo, err=True)


@click.command()
@cluster_options
@click.option(
    "--webhook-url",
    default="",
    metavar="https://IP:PORT",
    help="The webhook's address, if it runs outside the cluster.",
)
@click.option(
    "--feature-gates", default="", metavar="A=true,…", help="Feature gates; they decide which webhooks are called."
)
@click.option(
    "--keep-managed-fields", is_flag=True, help="Keep metadata.managedFields of new pods; set it for the services, too."
)
@click.option("--dry-run", is_flag=True, help="Validate everything at the apiserver without changing anything.")
@click.option("-o", "--output", type=click.Choice(["yaml"]), help="Print the manifests instead.")
@click.option(
    "--split",
    type=click.Path(file_okay=False, path_type=Path),
    help="With -o yaml: write one file per CRD and one for the rest into this folder.",
)
def install(
    kubeconfig: str,
    context: str,
    webhook_url: str,
    feature_gates: str,
    keep_managed_fields: bool,
    dry_run: bool,
    output: str | None,
    split: Path | None,
) -> None:
    """Install Flotilla on a cluster: CRDs, namespaces, roles, webhook configurations.

    Safe to repeat. The services themselves are started by `flotilla run` or by the chart.
    """
    wanted = _wanted(webhook_url.rstrip("/"), feature_gates, keep_managed_fields=keep_managed_fields)
    if split is not None and not output:
        raise click.UsageError("--split requires -o yaml")
    if output:
        _print(wanted, split)
        return
    with reported():
        asyncio.run(_install(target_of(kubeconfig, context), wanted, dry_run=dry_run, set_endpoints=bool(webhook_url)))


@click.command()
@cluster_options
@click.option(
    "--force", is_flag=True, help="Remove even if custom resources exist: they and all their pods are deleted."
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed without changing anything.")
@click.option(
    "--prepare",
    is_flag=True,
    help="Remove nothing: fail while workloads exist, else make the CRDs independent of the webhook.",
)
def uninstall(kubeconfig: str, context: str, force: bool, dry_run: bool, prepare: bool) -> None:
    """Remove Flotilla from a cluster. Refuses while objects of its kinds exist."""
    with reported():
        if prepare:
            asyncio.run(_prepare(target_of(kubeconfig, context)))
            return
        asyncio.run(_uninstall(target_of(kubeconfig, context), force=force, dry_run=dry_run))


def _wanted(webhook_url: str, feature_gates: str, *, keep_managed_fields: bool) -> list[Json]:
    if webhook_url and not webhook_url.startswith("https://"):
        raise click.UsageError("--webhook-url must begin with https://: the apiserver calls webhooks over TLS only")
    try:
        return manifests(Gates.parse(feature_gates), webhook_url, keep_managed_fields=keep_managed_fields)
    except ValueError as error:
        raise click.UsageError(f"--feature-gates: {error}") from error


async def _install(target: Target, wanted: Sequence[Json], *, dry_run: bool, set_endpoints: bool) -> None:
    clock = SystemClock()
    unwanted = [document for document in no_managed_fields() if document not in wanted]
    async with open_api(target) as api:
        await _refuse_beside_openkruise(api, clock)
        async for document, result in withdraw(api, unwanted, dry_run=dry_run):
            _print_result(document, result, dry_run=dry_run)
        async for document, result in apply(
            api, clock, wanted, _print_progress, dry_run=dry_run, set_endpoints=set_endpoints
        ):
            _print_result(document, result, dry_run=dry_run)
        definitions = [document for document in wanted if document["kind"] == "CustomResourceDefinition"]
        for definition in definitions if not dry_run else ():
            if not await established(api, definition, clock):
                raise click.ClickException(f"{title(definition)} was applied, but the apiserver does not serve it yet")


async def _refuse_beside_openkruise(api: Api, clock: Clock) -> None:
    """Refuse to install next to a running OpenKruise.

    Two managers would write the same pods, and the apiserver would call the webhook of only one.
    """
    if seen := at_work(await get(api, LEADER) or {}, await get(api, MANAGER) or {}, clock.now()):
        raise click.ClickException(f"OpenKruise is running on this cluster ({seen}): run flotilla adopt first")


async def _uninstall(target: Target, *, force: bool, dry_run: bool) -> None:
    clock = SystemClock()
    async with open_api(target) as api:
        if not force:
            await _refuse_while_used(api)
        left: list[Json] = []
        async for document, result in remove(api, clock, _print_progress, dry_run=dry_run):
            _print_result(document, result, dry_run=dry_run)
            if result.startswith(STILL_THERE):
                left.append(document)
    if left:
        raise click.ClickException(
            f"being removed, but not gone yet: {', '.join(title(document) for document in left)}. Usually "
            "finalizers block the removal"
        )


async def _prepare(target: Target) -> None:
    async with open_api(target) as api:
        left = await prepare_removal(api)
    if left:
        _list(left)
        raise click.ClickException(f"workloads exist ({len(left)}): delete them first. Nothing was changed")


async def _refuse_while_used(api: Api) -> None:
    try:
        left = await custom_resources(api)
    except ApiError as error:
        raise click.ClickException(
            f"cannot tell whether custom resources exist ({error.message}); see --force"
        ) from error
    if not left:
        return
    _list(left)
    raise click.ClickException(
        f"nothing was removed: custom resources exist ({len(left)}). Delete them first, or use --force: "
        "then they are deleted with their pods"
    )


def _list(left: Sequence[str]) -> None:
    for line in left[:SHOWN]:
        click.echo(line, err=True)
    if len(left) > SHOWN:
        click.echo(f"… and {len(left) - SHOWN} more", err=True)


def _print_result(document: Json, result: str, *, dry_run: bool) -> None:
    click.echo(f"{title(document)} {result}{' (server dry run)' if dry_run else ''}")


def _print(wanted: Sequence[Json], split: Path | None) -> None:
    if split is None:
        click.echo(as_yaml(wanted), nl=False)
        return
    split.mkdir(parents=True, exist_ok=True)
    definitions = [document for document in wanted if document["kind"] == "CustomResourceDefinition"]
    files = {f"{name_of(document)}.yaml": [document] for document in definitions}
    files["flotilla.yaml"] = [document for document in wanted if document not in definitions]
    for name, documents in files.items():
        (split / name).write_text(as_yaml(documents), encoding="utf-8")
        click.echo(split / name)
