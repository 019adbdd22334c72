"""The doctor's page, and the runs of the checks behind it."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import cast

import pytest

from flotilla_console.access.identity import Identity
from flotilla_console.blocks.types import Group, Notice, Paragraph
from flotilla_console.examiner import FRESH_SECONDS, Examine, Examiner, Report
from flotilla_console.pages import doctor
from flotilla_console.pages.doctor import Read, build
from flotilla_insight.doctor.catalogue import CHECKS, Check, examine
from flotilla_insight.doctor.facts import Facts
from flotilla_insight.doctor.finding import Looked, Outcome, broken, warning
from tests.support.fake_clock import FakeClock
from tests.testkit.tables import cases
from tests.unit.console.model.worlds import NOW, World, column, table, texts
from tests.unit.doctor.build import well

_SILENT = broken("ServiceSilent", "jobs", "no heartbeat for 8 s", "start it")
_CLOCK = warning("ClockOff", "node-1", "12 s ahead", "NTP")
_PASSED = Outcome(check="bus", title="the bus answers", seen="1 server")
_LEFT = Outcome(check="access", title="every service has its rights", not_checked="not allowed: roles")
_FOUND = Outcome(check="services", title="every service is alive", findings=[_SILENT, _CLOCK])


def _read(*outcomes: Outcome, is_running: bool = False) -> Read:
    return Read(is_allowed=True, report=Report(at=NOW - 5, seconds=9.6, outcomes=outcomes), is_running=is_running)


def _notice(read: Read) -> tuple[str, str]:
    first = build(World().request(read=read)).blocks[0]
    assert isinstance(first, Notice)
    return first.tone, "".join(getattr(span, "text", "") for span in first.spans)


@pytest.mark.parametrize(
    ("read", "tone", "words"),
    cases(
        {
            "well": (_read(_PASSED), "ok", "No problems found."),
            "broken": (_read(_PASSED, _FOUND), "bad", "1 broken, 1 warning."),
            "a check left out": (_read(_PASSED, _LEFT), "idle", "No problems found, 1 check could not be made."),
            "the first run": (
                Read(is_allowed=True, is_running=True),
                "busy",
                "The checks are being made, which takes some ten seconds. Reload",
            ),
            "no right": (
                Read(is_allowed=False),
                "warn",
                "You need the right to list leases in the installation's namespace to see this.",
            ),
        }
    ),
)
def test_the_verdict_is_one_sentence(read: Read, tone: str, words: str) -> None:
    assert _notice(read) == (tone, words)


def test_findings_are_grouped_by_severity() -> None:
    page = build(World().request(read=_read(_PASSED, _FOUND, _LEFT)))
    assert column(table(page, "broken-findings"), "code") == ["ServiceSilent"]
    assert column(table(page, "broken-findings"), "advice") == ["start it"]
    assert column(table(page, "warning-findings"), "about") == ["node-1"]


def test_all_checks_are_listed_with_what_was_seen() -> None:
    page = build(World().request(read=_read(_PASSED, _FOUND, _LEFT)))
    checks = table(page, "checks")
    assert column(checks, "result") == ["passed", "2 findings", "not checked"]
    assert column(checks, "seen") == ["1 server", "", "not allowed: roles"]
    assert [block.open for block in page.blocks if isinstance(block, Group)] == [True]


def test_the_page_says_when_the_checks_were_made() -> None:
    line = next(block for block in build(World().request(read=_read(_PASSED))).blocks if isinstance(block, Paragraph))
    assert f'"at":{NOW - 5}' in texts(line)
    assert "took 10 s" in texts(line)


def test_hostile_texts_and_repeated_findings_are_shown_once() -> None:
    odd = broken("X", "<script>", "\x00\ud7ff" * 10, "</td>")
    page = build(World().request(read=_read(Outcome(check="a", title="b", findings=[odd, odd]))))
    assert column(table(page, "broken-findings"), "about") == ["<script>"]


@asynccontextmanager
async def _running(examine: Examine, clock: FakeClock) -> AsyncGenerator[Examiner]:
    examiner = Examiner(examine, clock)
    task = asyncio.create_task(examiner.run())
    try:
        yield examiner
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _made(examiner: Examiner) -> Report:
    """Return the report of the run that is under way."""
    for _ in range(100):
        if examiner.is_running:
            await asyncio.sleep(0)
    assert not examiner.is_running
    report = examiner.latest()
    assert report is not None
    return report


class _Runs:
    """Checks that count their runs, and wait until they may end."""

    def __init__(self) -> None:
        self.count = 0
        self.may_end = asyncio.Event()

    async def __call__(self) -> Sequence[Outcome]:
        self.count += 1
        await self.may_end.wait()
        return [_PASSED]


async def test_all_viewers_share_one_run() -> None:
    runs = _Runs()
    async with _running(runs, FakeClock()) as examiner:
        assert [examiner.latest() for _ in range(5)] == [None] * 5
        await asyncio.sleep(0)
        assert examiner.latest() is None
        runs.may_end.set()
        assert list((await _made(examiner)).outcomes) == [_PASSED]
        assert runs.count == 1


async def test_nothing_is_checked_while_nobody_looks() -> None:
    runs = _Runs()
    async with _running(runs, FakeClock()):
        await asyncio.sleep(0)
        assert runs.count == 0


async def test_a_report_is_shown_while_the_next_one_is_made() -> None:
    runs, clock = _Runs(), FakeClock()
    runs.may_end.set()
    async with _running(runs, clock) as examiner:
        examiner.latest()
        first = await _made(examiner)
        clock.time += FRESH_SECONDS
        assert examiner.latest() is first
        assert not examiner.is_running
        clock.time += 1
        assert examiner.latest() is first
        assert examiner.is_running
        assert (await _made(examiner)).at > first.at
        assert runs.count == 2


async def test_a_run_that_fails_is_a_finding() -> None:
    async def fails() -> Sequence[Outcome]:
        raise KeyError("spec")

    async with _running(fails, FakeClock()) as examiner:
        examiner.latest()
        found = (await _made(examiner)).outcomes[0].findings[0]
        assert (found.code, found.text) == ("CheckFailed", "the checks ended with KeyError: 'spec'")


async def test_a_run_that_does_not_end_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flotilla_console.examiner.MOST_SECONDS", 0)
    async with _running(_Runs(), FakeClock()) as examiner:
        examiner.latest()
        found = (await _made(examiner)).outcomes[0].findings[0]
        assert found.text == "the checks were not over after 0 s"


def test_a_check_that_fails_harms_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def odd(_: Facts) -> Looked:
        yield _CLOCK
        raise TypeError("not a document")

    monkeypatch.setattr("flotilla_insight.doctor.catalogue.CHECKS", (CHECKS[0], Check("odd", "t", odd), CHECKS[1]))
    outcomes = examine(well())
    assert [outcome.check for outcome in outcomes] == ["apiserver", "odd", "definitions"]
    assert [finding.code for finding in outcomes[1].findings] == ["ClockOff", "CheckFailed"]


@pytest.mark.parametrize("is_allowed", [True, False])
async def test_reports_are_for_those_who_may_list_leases(is_allowed: bool) -> None:
    asked: list[str] = []

    async def may_read(identity: Identity) -> bool:
        asked.append(identity.user)
        return is_allowed

    runs = _Runs()
    async with _running(runs, FakeClock()) as examiner:
        spec = doctor.page(examiner, may_read)
        assert spec.prepare is not None
        read = cast("Read", await spec.prepare(World().request()))
        assert (read.is_allowed, examiner.is_running) == (is_allowed, is_allowed)
        assert asked == ["jane"]
