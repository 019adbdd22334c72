"""`flotilla doctor`: what is wrong with an installation, since when, and what to do about it; as text or as JSON."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import click
import msgspec

from flotilla_cli import connection, plugins
from flotilla_cli.connection import Target, open_api, open_bus, reported, target_of
from flotilla_cli.local import LocalCluster
from flotilla_cli.nats_config import BusUsers
from flotilla_cli.options import bus_option, cluster_options
from flotilla_cli.output import Progress
from flotilla_common.clock import Clock, SystemClock
from flotilla_insight.doctor.collect import Sources
from flotilla_insight.doctor.facts import Health
from flotilla_insight.doctor.finding import BROKEN, Finding, Outcome, exit_code
from flotilla_insight.doctor.looking import examined

_COLOURS = {BROKEN: "red"}


@click.command()
@cluster_options
@bus_option
@click.option("-o", "--output", type=click.Choice(["json"]), help="Print it as JSON.")
def doctor(kubeconfig: str, context: str, nats: str, output: str | None) -> None:
    """Find problems of an installation, and what to do about them.

    Changes nothing. Exit code: 0 no problems found, 1 something is broken, 3 warnings only.
    """
    with reported():
        outcomes = asyncio.run(_examined(target_of(kubeconfig, context), nats, SystemClock()))
    if output == "json":
        click.echo(as_json(outcomes))
    else:
        for line in lines(outcomes):
            click.echo(line)
    sys.exit(exit_code(outcomes))


async def _examined(target: Target, nats: str, clock: Clock) -> Sequence[Outcome]:
    """Return the confirmed findings."""
    async with _places(target, nats, clock) as places:
        return await examined(places, Progress(clock).step)


@asynccontextmanager
async def _places(target: Target, nats: str, clock: Clock) -> AsyncGenerator[Sources]:
    url = connection.nats_url_of(nats, target.kubeconfig)
    found = connection.set_of(target.kubeconfig)
    services = () if found and found.bare else tuple(found.services) if found else None
    async with open_api(target) as api:
        places = Sources(api=api, clock=clock, local=services, processes=partial(processes_of, found, clock))
        if not url:
            yield places
            return
        async with open_bus(url, target.kubeconfig) as bus:
            creds = connection.bus_target_of(url, target.kubeconfig).nats_creds
            yield msgspec.structs.replace(places, bus=bus, bus_url=url, enrolled=_enrolled(creds))


async def processes_of(found: LocalCluster | None, clock: Clock) -> Sequence[Health]:
    """Return the processes of a local cluster; none for another cluster, or where flotilla-dev is not installed."""
    check = plugins.local("health")
    return await check(Path(found.kubeconfig).parent, clock) if found and check else ()


def _enrolled(nats_creds: str) -> frozenset[str]:
    """Return the nodes with credentials from the bus whose state folder these credentials are in."""
    folder = Path(nats_creds)
    return frozenset(BusUsers(folder.parent.parent).nodes()) if nats_creds and folder.is_dir() else frozenset()


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """The JSON: findings first, then the checks that were made, and those that could not be made."""

    findings: Sequence[Finding]
    checked: dict[str, str]
    not_checked: dict[str, str]


def as_json(outcomes: Sequence[Outcome]) -> str:
    """Return the report as one document."""
    report = Report(
        [finding for outcome in outcomes for finding in outcome.findings],
        {outcome.check: outcome.seen for outcome in outcomes if not outcome.not_checked},
        {outcome.check: outcome.not_checked for outcome in outcomes if outcome.not_checked},
    )
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the findings with advice, then the checks."""
    findings = [finding for outcome in outcomes for finding in outcome.findings]
    for finding in findings:
        yield from _finding(finding)
    left = sum(bool(outcome.not_checked) for outcome in outcomes)
    yield f"{_count(findings)}{f'; {left} checks could not be made' if left else ''}. Checked:"
    for outcome in outcomes:
        if not outcome.not_checked:
            mark = click.style("✗", fg="red") if outcome.findings else click.style("✓", fg="green")
            yield f"  {mark} {outcome.title}" + click.style(f"  ({outcome.seen})", dim=True) * bool(outcome.seen)
    for why in dict.fromkeys(outcome.not_checked for outcome in outcomes if outcome.not_checked):
        checks = ", ".join(outcome.check for outcome in outcomes if outcome.not_checked == why)
        yield f"  {click.style('?', fg='yellow')} not checked: {checks}  ({why})"


def _finding(finding: Finding) -> Iterator[str]:
    severity = click.style(f"{finding.severity:<8}", fg=_COLOURS.get(finding.severity, "yellow"), bold=True)
    yield f"{severity} {click.style(finding.code, bold=True)}  {finding.about}"
    yield f"         {finding.text}"
    yield f"         → {finding.advice}"


def _count(findings: Sequence[Finding]) -> str:
    if not findings:
        return "No problems found"
    broken = sum(finding.severity == BROKEN for finding in findings)
    warnings = len(findings) - broken
    parts = [
        f"{broken} broken" * bool(broken),
        f"{warnings} warning{'s'[: warnings != 1]}" * bool(warnings),
    ]
    return ", ".join(filter(None, parts))
