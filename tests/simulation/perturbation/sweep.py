"""The exhaustive sweep: every fault at every point of every scenario, on all cores."""

import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from tests.simulation.oracles.outcome import Outcome, differences
from tests.simulation.perturbation.catalogue import FAULT_KINDS, SILENCE_SECONDS, Setting, faults_at
from tests.simulation.perturbation.fault import Fault, Point
from tests.simulation.perturbation.forks import branch
from tests.simulation.perturbation.play import CONVERGENCE_SECONDS, warm_up
from tests.simulation.scenarios import every_scenario
from tests.simulation.scenarios.scenario import Scenario
from tests.support.bound import end_with_parent

SETTINGS = tuple(dict.fromkeys(kind.setting for kind in FAULT_KINDS.values()))
"""The worlds that the catalogue needs."""

REPLAY = ".venv/bin/python -m tests.simulation replay"


class Unit(msgspec.Struct, frozen=True):
    """The unit of work of one core: one scenario in worlds of one setting."""

    scenario: str
    setting: Setting
    every: int = 1  # run only each so-many-th fault …
    first: int = 0  # … beginning with this one


class Failure(msgspec.Struct, frozen=True):
    """A run that failed."""

    scenario: str
    fault: str  # empty for the undisturbed run
    problems: tuple[str, ...]

    def __str__(self) -> str:
        told = "".join(f"\n    {problem}" for problem in self.problems)
        return f"{self.scenario} {self.fault}{told}\n    replay: {REPLAY} {self.scenario} {self.fault}".rstrip()


class Tally(msgspec.Struct):
    """The counts of a sweep."""

    scenarios: int = 0
    points: int = 0
    runs: int = 0
    kinds: dict[str, int] = {}
    failures: list[Failure] = []
    seconds: float = 0.0

    def add(self, other: "Tally") -> None:
        """Add the tally of a unit."""
        self.points += other.points
        self.runs += other.runs
        self.kinds = dict(Counter(self.kinds) + Counter(other.kinds))
        self.failures += other.failures

    def __str__(self) -> str:
        rate = self.runs / max(self.seconds, 0.001) * 60
        return (
            f"{self.scenarios} scenarios, {self.points} perturbation points, {self.runs} runs"
            f" in {self.seconds:.0f} s ({rate:.0f} runs per minute on {cores()} cores), {len(self.failures)} failures"
        )


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def problems_of(scenario: Scenario, reference: Outcome, run: Outcome, fault: Fault) -> list[str]:
    """Return the problems of a disturbed run."""
    problems = [*run.problems, *differences(reference, run, exact=scenario.exact)]
    if not run.injected:
        problems.append("the point was not reached")
    latest = reference.settled + FAULT_KINDS[fault.kind].outage + CONVERGENCE_SECONDS
    if scenario.agents:  # a report that nobody answers while a shard changes hands is sent again after this time
        latest += SILENCE_SECONDS
    if run.settled > latest:
        problems.append(f"came to rest after {run.settled:.1f} s, it must within {latest:.1f} s")
    return problems


def sweep_unit(unit: Unit) -> Tally:
    """Inject every fault of one scenario in one setting."""
    scenario, tally = every_scenario()[unit.scenario], Tally()

    def choose(points: Sequence[Point]) -> list[Fault]:
        redone = scenario.restorable and not scenario.exact
        found = faults_at(points, unit.setting, scenario.services, scenario.agents, exact=not redone)
        return found[unit.first :: unit.every]

    reference, *runs = branch(scenario, unit.setting, choose)
    tally.runs = 1 + len(runs)
    if reference.outcome.problems:
        tally.failures.append(Failure(scenario.name, "", reference.outcome.problems))
    if unit.setting == Setting():  # the other worlds pass the same points
        tally.points += len(reference.points)
    for report in runs:
        fault = report.fault
        assert fault is not None
        tally.kinds[fault.kind] = tally.kinds.get(fault.kind, 0) + 1
        if problems := problems_of(scenario, reference.outcome, report.outcome, fault):
            tally.failures.append(Failure(scenario.name, str(fault), tuple(problems)))
    return tally


def units(names: Sequence[str], every: int, first: int, *, exhaustive: bool) -> Iterator[Unit]:
    """Yield the units of work, the longest first (all faults without a setting), so that all cores end together.

    Skewed clocks mean nothing to a scenario that depends on them, and two watchers nothing without agents.
    """
    scenarios = every_scenario()
    chosen = names or [name for name, scenario in scenarios.items() if exhaustive or scenario.every]
    for number, setting in enumerate(SETTINGS):
        # Half of the worlds with twice the faults each: as many faults, and half as many undisturbed runs.
        turns = 2 if setting != Setting() and every % 2 == 0 else 1
        for position, name in enumerate(chosen):
            scenario = scenarios[name]
            meaningless = (setting.skew and scenario.timed) or (setting.watchers > 1 and not scenario.agents)
            if not meaningless and (number + position + first) % turns == 0:
                step = every if exhaustive else every * (scenario.every or 1)
                yield Unit(name, setting, step // turns, first // turns)


def sweep(
    names: Sequence[str] = (),
    *,
    every: int = 1,
    first: int = 0,
    exhaustive: bool = False,
    say: Callable[[str], None] = print,
) -> Tally:
    """Sweep all scenarios, or the named ones, or a slice of the faults of each, and report the progress.

    An `exhaustive` sweep injects each fault also where a usual one takes a part (`Scenario.every`).
    """
    work, total, started = list(units(names, every, first, exhaustive=exhaustive)), Tally(), time.monotonic()
    total.scenarios = len({unit.scenario for unit in work})
    said = started
    warm_up()
    with multiprocessing.get_context("fork").Pool(cores(), initializer=end_with_parent, maxtasksperchild=1) as pool:
        for done, tally in enumerate(pool.imap_unordered(sweep_unit, work), 1):
            total.add(tally)
            for failure in tally.failures:
                say(f"FAILED {failure}")
            if time.monotonic() - said > 10:
                said = time.monotonic()
                say(f"{done} of {len(work)} parts, {total.runs} runs, {len(total.failures)} failures")
    total.seconds = time.monotonic() - started
    return total
