"""Runs `mutmut` with the tests collected once, instead of once for each mutant.

mutmut forks one process per mutant from one that has imported everything, but each then starts pytest and collects the
test files again: most of its time. Here the forked process has the tests collected, so that a mutant costs a fork and
the tests that run its function: first those that caught its neighbours, then the fastest ones, up to the first that
fails.
"""

import gc
import json
import signal
from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import mutmut.__main__ as mutmut
import pytest
from _pytest.config import _prepareconfig
from mutmut.configuration import config
from mutmut.mutation import trampoline
from mutmut.mutation.data import SourceFileMutationData
from mutmut.runners.harness import PytestRunner
from mutmut.state import state
from mutmut.utils.file_utils import change_cwd
from mutmut.utils.format_utils import mangled_name_from_mutant_name
from mutmut.workers.isolation import ForkServerRunner, MutantRunner, run_in_fork

Mutant = tuple[SourceFileMutationData, str, int | None]
"""A mutant with its file and its last verdict."""

CAUGHT, MISSED = 1, 0
CATCHES = Path("catches.json")
"""File in the folder of mutants: how many mutants of a function each test caught."""


class CollectedOnce(PytestRunner):
    """Runs the tests of a mutant in a fork of the session that has collected all of them."""

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[str, pytest.Item] = {}

    def warm_up(self) -> None:
        """Collect: what pytest does before it runs the first test."""
        with change_cwd("mutants"):
            # No tracebacks, and no explanations of differences: they are not read, and long ones take seconds.
            quick = ["--rootdir=.", "-q", "--capture=no", "--tb=no", "--assert=plain"]
            arguments = [*quick, *config().pytest_add_cli_args_test_selection]
            prepared = _prepareconfig([*arguments, *config().pytest_add_cli_args])
            prepared._do_configure()
            session = pytest.Session.from_config(prepared)
            prepared.hook.pytest_sessionstart(session=session)
            self._items = {item.nodeid: item for item in session.perform_collect()}
        gc.collect()
        gc.freeze()
        if run_in_fork(self.run_tests, mutant_name=None, tests=self._items):
            raise RuntimeError("a test fails without any mutant: all of them would count as caught")

    def run_tests(self, *, mutant_name: str | None, tests: Iterable[str]) -> int:
        if not self._items:  # the tool's own check that a test can fail: an ordinary run
            return super().run_tests(mutant_name=mutant_name, tests=tests)
        # The tool's own look at the environment, at each call of each function, takes a third of the time.
        trampoline.get_mutant_under_test = lambda: mutant_name or ""
        with change_cwd("mutants"):
            catches = _Catches(mutant_name)
            caught_by = self._first_failure(catches.order(tests))
            catches.note(caught_by)
        return MISSED if caught_by is None else CAUGHT

    def _first_failure(self, tests: list[str]) -> str | None:
        for test, following in zip(tests, [*tests[1:], None], strict=True):
            item = self._items[test]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following and self._items[following])
            if item.session.testsfailed:
                return test
        return None


class _Catches:
    """The tests that caught mutants of the same function: they are likely to catch the next one, too."""

    def __init__(self, mutant_name: str | None) -> None:
        self._all = json.loads(CATCHES.read_text(encoding="utf-8")) if CATCHES.exists() else {}
        function = mangled_name_from_mutant_name(mutant_name) if mutant_name else ""
        self._here = Counter[str](self._all.setdefault(function, {}))
        self._function = function

    def order(self, tests: Iterable[str]) -> list[str]:
        seconds = state().duration_by_test
        return sorted(tests, key=lambda test: (-self._here[test], seconds.get(test, 0.0), test))

    def note(self, test: str | None) -> None:
        if test is not None and self._function:
            self._all[self._function] = self._here + Counter([test])
            CATCHES.write_text(json.dumps(self._all), encoding="utf-8")


class _Runner(ForkServerRunner):
    def run_clean_tests(self, tests: Iterable[str]) -> int:
        return 0  # all of them run at the end of each warm-up


def _runner(max_workers: int = 1) -> MutantRunner:
    return _Runner(max_workers, CollectedOnce, {})


def _chosen(*, mutant_names: Sequence[str]) -> tuple[list[Mutant], dict[str, SourceFileMutationData]]:
    """Select mutants like the tool's function, which would compare each mutant with each name as a pattern."""
    mutants, files = _all_mutants(mutant_names=())
    names = set(mutant_names)
    patterns = [name for name in mutant_names if "*" in name]
    return [
        mutant
        for mutant in mutants
        if not names or mutant[1] in names or any(fnmatchcase(mutant[1], pattern) for pattern in patterns)
    ], files


_all_mutants = mutmut.collect_source_file_mutation_data

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let what runs in the background ignore it
    mutmut.get_mutant_runner = _runner
    mutmut.collect_source_file_mutation_data = _chosen
    mutmut.cli()
