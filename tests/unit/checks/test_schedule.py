"""The assignment of tests to workers: files whole, single tests wherever there is room."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from xdist.remote import Producer

from tests.support.schedule import Units, file_of

FILES = [f"t/own_{file}.py::test_{number}" for file in "abc" for number in range(4)]
SINGLES = [f"t/spread.py::test_{number}" for number in range(12)]


def unit(name: str) -> str:
    return name if name in SINGLES else file_of(name)


class Worker:
    """The scheduler's view of a worker: it receives tests by their number."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.given: list[str] = []

    def send_runtest_some(self, numbers: list[int]) -> None:
        self.given += [(FILES + SINGLES)[number] for number in numbers]

    def shutdown(self) -> None:
        self.shutting_down = True


class Run:
    """A run with some workers."""

    def __init__(self, workers: int, whole: int) -> None:
        config: Any = SimpleNamespace(
            getvalue={"tx": ["popen"] * workers}.__getitem__, option=SimpleNamespace(loadscopereorder=False)
        )
        log = Producer("test", enabled=False)
        self.scheduler = Units(cast("pytest.Config", config), log, unit, whole)
        self.workers = [Worker(f"gw{number}") for number in range(workers)]
        for worker in cast("list[Any]", self.workers):
            self.scheduler.add_node(worker)
            self.scheduler.add_node_collection(worker, FILES + SINGLES)
        self.scheduler.schedule()

    def files(self) -> list[set[str]]:
        """Return the files whose tests each worker was given."""
        return [{name.partition("::")[0] for name in worker.given} - {"t/spread.py"} for worker in self.workers]

    def finish(self, worker: Worker, test: str) -> None:
        self.scheduler.mark_test_complete(cast("Any", worker), (FILES + SINGLES).index(test))


def test_as_many_workers_as_may_begin_with_files_and_the_others_with_single_tests() -> None:
    run = Run(workers=4, whole=2)
    assert run.files() == [{"t/own_a.py"}, {"t/own_b.py"}, set(), set()]
    assert all("spread" in name for worker in run.workers[2:] for name in worker.given)


def test_the_next_file_waits_for_the_end_of_another() -> None:
    run = Run(workers=3, whole=1)
    first, second, _ = run.workers
    for test in list(second.given):
        run.finish(second, test)
    assert run.files()[1:] == [set(), set()]
    for test in list(first.given):
        run.finish(first, test)
    assert "t/own_b.py" in set.union(*run.files())


def test_everything_is_given_once_and_a_file_to_one_worker() -> None:
    run = Run(workers=3, whole=2)
    done: set[str] = set()
    while open_ := [(worker, test) for worker in run.workers for test in worker.given if test not in done]:
        worker, test = open_[0]
        run.finish(worker, test)
        done.add(test)
    given = [name for worker in run.workers for name in worker.given]
    assert sorted(given) == sorted(FILES + SINGLES)
    assert sum(map(len, run.files())) == 3
    assert all(worker.shutting_down for worker in run.workers)


def test_without_single_tests_all_workers_are_at_files() -> None:
    run = Run(workers=2, whole=1)
    first, second = run.workers
    for test in second.given:  # it is given more meanwhile
        run.finish(second, test)
        if run.files()[1]:
            break
    assert not set(SINGLES) - {*first.given, *second.given}
    assert run.files() == [{"t/own_a.py"}, {"t/own_b.py"}]
