"""The doctor's page: what is wrong with the installation, and what to do about it.

The findings name the installation's pods, nodes and settings. A reader needs the right to list leases in the
installation's namespace, which those who operate it have.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from flotilla_console import paths
from flotilla_console.access.identity import Identity
from flotilla_console.blocks.types import (
    Age,
    AnyBlock,
    Badge,
    Group,
    Link,
    Notice,
    Paragraph,
    Row,
    Span,
    Table,
    Tone,
    spans,
)
from flotilla_console.examiner import Examiner, Report
from flotilla_console.page import Page, PageRequest, PageSpec
from flotilla_console.pages.parts import whole_table
from flotilla_insight.doctor.finding import BROKEN, WARNING, Finding, Outcome

PATH = paths.path("doctor")

MayRead = Callable[[Identity], Awaitable[bool]]
"""Reports whether an identity may list leases in the installation's namespace."""

_SEVERITIES: Mapping[str, tuple[str, Tone]] = {
    BROKEN: ("Broken: does not work now", "bad"),
    WARNING: ("Warnings: will not work, or works other than intended", "warn"),
}


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """The last report, if its reader may see it."""

    is_allowed: bool
    report: Report | None = None
    is_running: bool = False


def page(examiner: Examiner, may_read: MayRead) -> PageSpec:
    """Return the page of this examiner's findings."""

    async def prepare(request: PageRequest) -> Read:
        if not await may_read(request.identity):
            return Read(is_allowed=False)
        report = examiner.latest()
        return Read(is_allowed=True, report=report, is_running=examiner.is_running)

    return PageSpec(name="doctor", path=PATH, build=build, prepare=prepare, navigation="Doctor")


def build(request: PageRequest) -> Page:
    """Return the page."""
    read = request.read if isinstance(request.read, Read) else Read(is_allowed=False)
    return Page(title="Doctor", blocks=tuple(_blocks(read)))


def _blocks(read: Read) -> Iterator[AnyBlock]:
    if not read.is_allowed:
        yield Notice("warn", spans("You need the right to list leases in the installation's namespace to see this."))
    elif read.report is None:
        yield Notice("busy", spans("The checks are being made, which takes some ten seconds. ", Link("Reload", PATH)))
    else:
        outcomes = read.report.outcomes
        findings = [finding for outcome in outcomes for finding in outcome.findings]
        yield Notice(*_verdict(findings, outcomes))
        yield Paragraph(_made(read.report, read.is_running))
        yield from _findings(findings)
        yield from _checks(outcomes)


def _verdict(findings: Sequence[Finding], outcomes: Iterable[Outcome]) -> tuple[Tone, tuple[Span, ...]]:
    counts = Counter(finding.severity for finding in findings)
    words = [f"{counts[BROKEN]} broken"] if counts[BROKEN] else []
    if warnings := counts[WARNING]:
        words.append(f"{warnings} {'warning' if warnings == 1 else 'warnings'}")
    if left := sum(bool(outcome.not_checked) for outcome in outcomes):
        words.append(f"{left} {'check' if left == 1 else 'checks'} could not be made")
    tone: Tone = "bad" if counts[BROKEN] else "warn" if counts[WARNING] else "idle" if left else "ok"
    return tone, spans(", ".join(words) if findings else ", ".join(["No problems found", *words]), ".")


def _made(report: Report, is_running: bool) -> tuple[Span, ...]:
    again = " They are being made again now." if is_running else ""
    return spans("The checks were made ", Age(report.at), f" ago and took {report.seconds:.0f} s.{again}")


def _findings(findings: Sequence[Finding]) -> Iterator[Table]:
    for severity, (title, tone) in _SEVERITIES.items():
        found = [finding for finding in findings if finding.severity == severity]
        if found:
            columns = ("code", "Code"), ("about", "Where"), ("text", "What is wrong"), ("advice", "What to do")
            yield whole_table(f"{severity}-findings", title, columns, _rows(found, tone))


def _rows(findings: Iterable[Finding], tone: Tone) -> tuple[Row, ...]:
    unique = {finding.key: finding for finding in findings}
    return tuple(
        Row(
            key="/".join(one.key),
            cells=(spans(Badge(one.code, tone)), spans(one.about), spans(one.text), spans(one.advice)),
            tone=tone,
        )
        for one in unique.values()
    )


def _checks(outcomes: Iterable[Outcome]) -> Iterator[Group]:
    """Yield the checks that were made, and those that were not, with the reason."""
    rows = tuple(
        Row(key=one.check, cells=(spans(_result(one)), spans(one.title), spans(one.not_checked or one.seen)))
        for one in outcomes
    )
    table = whole_table("checks", "All checks", (("result", "Result"), ("check", "Check"), ("seen", "Details")), rows)
    yield Group(
        "all-checks", spans(f"All checks ({len(rows)})"), (table,), open=any(one.not_checked for one in outcomes)
    )


def _result(outcome: Outcome) -> Badge:
    if outcome.findings:
        count = len(outcome.findings)
        worst = any(finding.severity == BROKEN for finding in outcome.findings)
        return Badge(f"{count} {'finding' if count == 1 else 'findings'}", "bad" if worst else "warn")
    return Badge("not checked", "idle") if outcome.not_checked else Badge("passed", "ok")
