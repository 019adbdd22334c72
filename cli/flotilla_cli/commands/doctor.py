"""`flotilla doctor`: what is wrong with an installation, since when, and what to do about it; as text or as JSON."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager

import click
import msgspec

from flotilla_cli import connection
from flotilla_cli.connection import Target, open_api, open_bus, reported, target_of
from flotilla_cli.doctor.catalogue import examine
from flotilla_cli.doctor.collect import Sources, collect
from flotilla_cli.doctor.finding import BROKEN, Finding, Outcome, confirmed, exit_code, keys
from flotilla_cli.options import bus_option, cluster_options
from flotilla_cli.output import Progress
from flotilla_common.clock import Clock, SystemClock

AGAIN_SECONDS = 2.0
"""Seconds between two looks."""

MOST_LOOKS = 3

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
    """Return the findings that two looks in a row agree on.

    One look is enough if it finds nothing; a third is taken if the second finds something new.
    """
    progress = Progress(clock)
    async with _places(target, nats, clock) as places:
        with progress.step("Look at the installation"):
            looks = [examine(await collect(places))]
        while keys(looks[-1]) and len(looks) < MOST_LOOKS:
            with progress.step("Look again to confirm the findings"):
                await clock.sleep(AGAIN_SECONDS)
                looks.append(examine(await collect(places)))
            if keys(looks[-1]) <= keys(looks[-2]):
                break
        return looks[0] if len(looks) == 1 else confirmed(looks[-2], looks[-1])


@asynccontextmanager
async def _places(target: Target, nats: str, clock: Clock) -> AsyncGenerator[Sources]:
    url = connection.nats_url_of(nats, target.kubeconfig)
    local = connection.set_of(target.kubeconfig)
    async with open_api(target) as api:
        if not url:
            yield Sources(api, None, None, local, clock)
            return
        async with open_bus(url, target.kubeconfig) as bus:
            yield Sources(api, bus, connection.bus_target_of(url, target.kubeconfig), local, clock)


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
