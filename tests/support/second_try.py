"""Retries a failed test with real processes once, alone, after all others.

    python -m pytest -p tests.support.second_try tests/integration …

Such tests share a machine with others, and may fail for that reason alone. A test that passes at the second try is
*flaky*: the run passes, but the test is named at the end with its first failure, and it does not count as passed in
pytest's closing line. A test that fails twice fails the run. So does everything that is no outcome of a test: errors of
collection, a run without tests, an interrupted one. Unit tests and simulation never get a second try: they do not
depend on the machine.

A worker that crashes (pytest-xdist) fails the test that it was running, which is retried like any other.
"""

import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from flotilla_cli.local import bound_command

FAILURES = ("failed", "error")
"""pytest's categories: "error" is a failure of a fixture."""
FLAKY = "flaky"
MOST = 20
"""Maximum number of retried tests: more failures than this are no coincidence, and nothing is retried.

Tests share control planes: when one process of a plane fails, all tests that need it fail together.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--flaky-list", type=Path, help="append the names of flaky tests to this file")


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Retry failed tests: the workers have ended, and the summary is still to come."""
    result: None = yield
    complete = session.exitstatus == pytest.ExitCode.TESTS_FAILED and not (session.shouldfail or session.shouldstop)
    if complete and not hasattr(session.config, "workerinput"):
        _try_again(session)
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print both outcomes of each flaky test; the second one is printed where it ran, too."""
    flaky: list[pytest.TestReport] = terminalreporter.stats.get(FLAKY, [])
    for report in flaky:
        terminalreporter.write_sep("_", f"{report.nodeid}: the first try, which failed", yellow=True)
        terminalreporter.write_line(report.longreprtext)
        for title, text in report.sections:
            terminalreporter.write_sep("-", title)
            terminalreporter.write_line(text)
    if flaky:
        terminalreporter.write_sep("=", "flaky tests: failed, then passed when run alone", yellow=True)
    for report in flaky:
        terminalreporter.write_line(f"FLAKY {report.nodeid}", yellow=True)


def _try_again(session: pytest.Session) -> None:
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    failures: list[Any] = [report for category in FAILURES for report in reporter.stats.get(category, [])]
    names = list(dict.fromkeys(one.nodeid for one in failures if isinstance(one, pytest.TestReport)))
    if len(names) > MOST:
        reporter.write_sep("=", f"{len(names)} tests failed: too many for a second try", red=True)
        return
    for name in names:
        reporter.write_sep("=", f"second try, alone: {name}")
        reporter.flush()
        if _passes(session.config, name):
            _forgive(session, reporter.stats, name)
    if not any(reporter.stats.get(category) for category in FAILURES):
        session.exitstatus = pytest.ExitCode.OK


def _passes(config: pytest.Config, name: str) -> bool:
    """Run one test in a pytest of its own, which ends with this one. To be skipped is not to pass."""
    timeout = config.getoption("timeout", None)
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    with tempfile.TemporaryDirectory() as folder, capture.global_and_fixture_disabled():
        results = Path(folder) / "results.xml"
        command = [sys.executable, "-m", "pytest", name, "-q", "-n0", f"--junitxml={results}"]
        command += [f"--timeout={timeout}"] if timeout is not None else []
        reply = subprocess.run(bound_command(command), cwd=config.rootpath, check=False)
        return reply.returncode == 0 and ElementTree.parse(results).find("testsuite[@skipped='0']") is not None


def _forgive(session: pytest.Session, stats: dict[str, list[Any]], name: str) -> None:
    """Count a test as flaky, and as nothing else."""
    reports: list[pytest.TestReport] = []
    for category in (*FAILURES, "passed"):
        all_of_it = stats.pop(category, [])
        of_test = [one for one in all_of_it if isinstance(one, pytest.TestReport) and one.nodeid == name]
        reports += of_test
        if len(of_test) < len(all_of_it):
            stats[category] = [one for one in all_of_it if one not in of_test]
    stats.setdefault(FLAKY, []).append(reports[0])
    listed: Path | None = session.config.getoption("--flaky-list")
    if listed is not None:
        with listed.open("a", encoding="utf-8") as file:
            file.write(f"FLAKY {name}\n")
