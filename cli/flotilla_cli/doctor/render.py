"""What the doctor says, for a terminal and as JSON."""

from collections.abc import Iterator, Sequence

import click
import msgspec

from flotilla_cli.doctor.finding import BROKEN, Finding, Outcome

_COLOURS = {BROKEN: "red"}


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """The JSON: findings first, then what was looked at, and what could not be."""

    findings: Sequence[Finding]
    checked: dict[str, str]
    not_checked: dict[str, str]


def as_json(outcomes: Sequence[Outcome]) -> str:
    """One document."""
    report = Report(
        [finding for outcome in outcomes for finding in outcome.findings],
        {outcome.check: outcome.seen for outcome in outcomes if not outcome.not_checked},
        {outcome.check: outcome.not_checked for outcome in outcomes if outcome.not_checked},
    )
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Findings with what to do, then what was looked at."""
    findings = [finding for outcome in outcomes for finding in outcome.findings]
    for finding in findings:
        yield from _finding(finding)
    left = sum(bool(outcome.not_checked) for outcome in outcomes)
    yield f"{_count(findings)}{f'; {left} checks could not be made' if left else ''}. Looked at:"
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
        return "Nothing found"
    broken = sum(finding.severity == BROKEN for finding in findings)
    parts = [
        f"{broken} broken" * bool(broken),
        f"{len(findings) - broken} to be seen to" * bool(len(findings) - broken),
    ]
    return ", ".join(filter(None, parts))
