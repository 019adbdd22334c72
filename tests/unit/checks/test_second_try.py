"""The second try of tests with real processes: which failures it forgives, and its last lines."""

from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TESTS = """
import os
from pathlib import Path
import pytest

def first(name):
    seen = Path(name).exists()
    Path(name).touch()
    return not seen

def test_good(): pass
def test_good_too(): pass
"""
ONCE = "def test_once(): assert not first('once'), 'bad luck'\n"
ALWAYS = "def test_always(): assert False, 'a defect'\n"
CRASHES_ONCE = "def test_crashes_once():\n    if first('crash'): os._exit(3)\n"
CRASHES = "def test_crashes(): os._exit(3)\n"
ODD_NAMES = "@pytest.mark.parametrize('odd', ['a@b', 'c::d'])\ndef test_odd(odd): assert not first(odd)\n"
TEARDOWN = """
@pytest.fixture
def thing():
    yield
    assert not first('thing'), 'a mess'
def test_with_thing(thing): pass
"""
SKIPPED = "def test_skipped():\n    if not first('skip'): pytest.skip('not today')\n    assert False\n"
MANY = "".join(f"def test_{number}(): assert False\n" for number in range(21))
WORKERS = ("-n2", "--dist=loadfile")

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run good tests with these bad ones; exit code and output."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(*bad: str, options: tuple[str, ...] = ("-n0",)) -> tuple[int, str]:
        pytester.makepyfile(test_it=TESTS + "".join(bad))
        line = ("-q", "-p", "tests.support.second_try", "--flaky-list=flaky", *options)
        reply = pytester.runpytest_subprocess(*line)
        return reply.ret, reply.stdout.str()

    return run


def closing(output: str) -> str:
    """Return pytest's last line, without the time."""
    return output.splitlines()[-1].rpartition(" in ")[0]


def test_a_pass_at_the_second_try_is_flaky_and_both_outcomes_are_told(run: Run):
    code, output = run(ONCE)
    assert (code, closing(output)) == (0, "2 passed, 1 flaky")
    assert "second try, alone: test_it.py::test_once" in output
    assert "\n1 passed in " in output
    assert "AssertionError: bad luck" in output
    assert "FLAKY test_it.py::test_once" in output.splitlines()
    assert Path("flaky").read_text() == "FLAKY test_it.py::test_once\n"


def test_with_workers_crashes_and_fixtures_are_failures_too(run: Run):
    code, output = run(ONCE, CRASHES_ONCE, ODD_NAMES, TEARDOWN, options=WORKERS)
    assert (code, closing(output)) == (0, "2 passed, 5 flaky")
    assert "crashed while running 'test_it.py::test_crashes_once'" in output
    assert "AssertionError: a mess" in output
    listed = set(Path("flaky").read_text().splitlines())
    names = {"once", "crashes_once", "odd[a@b]", "odd[c::d]", "with_thing"}
    assert listed == {f"FLAKY test_it.py::test_{name}" for name in names} <= set(output.splitlines())


def test_what_fails_twice_fails_the_run(run: Run):
    code, output = run(ALWAYS, CRASHES, SKIPPED, ONCE, options=("-n2",))
    assert (code, closing(output)) == (1, "3 failed, 2 passed, 1 flaky")
    assert output.count("\n1 failed in ") == 1
    assert output.count("\n1 skipped in ") == 1
    for name in ("always", "crashes", "skipped"):
        assert f"FAILED test_it.py::test_{name}" in output
    assert Path("flaky").read_text() == "FLAKY test_it.py::test_once\n"


def test_many_failures_are_not_tried_again(run: Run):
    code, output = run(MANY)
    assert (code, closing(output)) == (1, "21 failed, 2 passed")
    assert "21 tests failed: too many for a second try" in output
    assert "second try, alone" not in output


@pytest.mark.parametrize(
    ("bad", "options", "code"),
    [
        pytest.param("", ("-n2", "-k", "nothing"), pytest.ExitCode.NO_TESTS_COLLECTED, id="no tests"),
        pytest.param(ONCE, ("-n0", "-x"), pytest.ExitCode.TESTS_FAILED, id="stopped early"),
        pytest.param("import nowhere\n", ("-n0",), pytest.ExitCode.INTERRUPTED, id="unreadable"),
    ],
)
def test_what_is_no_outcome_of_a_test_fails_the_run(
    run: Run, bad: str, options: tuple[str, ...], code: pytest.ExitCode
):
    found, output = run(bad, options=options)
    assert found == code
    assert "second try" not in output
