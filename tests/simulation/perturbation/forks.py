"""Many runs from one shared run: the process forks at the point of each fault.

Up to its point a disturbed run is the undisturbed one. So that one is played once, in this process, and at each of its
points one child per fault continues from there and reports. A simulated world has no threads, sockets or timers outside
of the process: a fork is a perfect copy of it.
"""

import asyncio
import os
import signal
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager

import msgspec

from tests.simulation.loop import SimulatedLoop
from tests.simulation.oracles.outcome import Outcome
from tests.simulation.perturbation.catalogue import FAULT_KINDS, Setting
from tests.simulation.perturbation.fault import Fault, Place, Point
from tests.simulation.perturbation.fault_injector import Effect, FaultInjector
from tests.simulation.perturbation.play import Run, in_world
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.world import World

CHILD_SECONDS = 60
"""CPU seconds until a run is given up (wall time would pass in a paused process); it takes a thirtieth of one."""


class Report(msgspec.Struct, frozen=True):
    """The outcome of one run, with its points if it was undisturbed."""

    outcome: Outcome
    fault: Fault | None = None
    points: Sequence[Point] = ()


Choice = Callable[[Sequence[Point]], Iterable[Fault]]
"""Chooses the faults to inject, given the points of the undisturbed run."""


def branch(scenario: Scenario, setting: Setting, choose: Choice) -> list[Report]:
    """Run the scenario undisturbed, and once with every chosen fault, in worlds of this setting.

    The first report is that of the undisturbed run; if that one fails, it is the only one.
    """
    injector, forks = FaultInjector(), Forks()
    stems: list[SharedRun] = []

    async def body(world: World) -> None:
        run = Run(scenario, injector, world)
        await run.prepare()
        if not forks.child(world.loop, None):
            reference = forks.reports[0]
            if reference.outcome.problems:
                return
            stem = SharedRun(run, forks, world.loop, choose(reference.points))
            if not stem.left:
                return
            stems.append(stem)
            injector.stem = stem
        await _play(run, world, forks)

    try:
        in_world(scenario, injector, body, setting)
    except BaseException as error:
        forks.report(Outcome(problems=(traceback.format_exc(),)))
        if not (isinstance(error, RuntimeError) and any(stem.over for stem in stems)):  # its loop was stopped
            raise
    lost = Outcome(problems=("the stem did not reach the point",))
    forks.reports += [Report(lost, fault) for stem in stems for fault in stem.left]
    return forks.reports


def variants(scenario: Scenario, contexts: Sequence[Callable[[], AbstractContextManager[None]]]) -> list[Outcome]:
    """Prepare the scenario once, and play it from there without a fault once in each context.

    If the first run fails, it is the only one.
    """
    injector, forks = FaultInjector(), Forks()

    async def body(world: World) -> None:
        run = Run(scenario, injector, world)
        await run.prepare()
        for context in contexts:
            if forks.child(world.loop, None):
                with context():
                    await _play(run, world, forks)
            if forks.reports[0].outcome.problems:
                return

    try:
        in_world(scenario, injector, body, Setting())
    except BaseException:
        forks.report(Outcome(problems=(traceback.format_exc(),)))
        raise
    return [report.outcome for report in forks.reports]


async def _play(run: Run, world: World, forks: "Forks") -> None:
    """Play the run to its end; a child reports the outcome, and ends."""
    outcome = await run.play()
    unhandled = ["".join(traceback.format_exception(error)) for error in world.loop.unhandled]
    forks.report(msgspec.structs.replace(outcome, problems=(*outcome.problems, *unhandled)), run.points)


class SharedRun:
    """The undisturbed run in the parent, up to its last point with a fault.

    A child leaves it for every fault at every point.
    """

    def __init__(self, run: Run, forks: "Forks", loop: SimulatedLoop, faults: Iterable[Fault]) -> None:
        self._run = run
        self._forks = forks
        self._loop = loop
        self._faults: defaultdict[tuple[Place, str, int], list[Fault]] = defaultdict(list)
        self._is_child = False
        for fault in faults:
            self._faults[(FAULT_KINDS[fault.kind].place, fault.writer, fault.number)].append(fault)

    def __call__(self, point: Point) -> Effect | None:
        """Fork at a point. Returns None in the parent, the effect in each child."""
        for fault in self._faults.pop((point.place, point.writer, point.number), ()):
            if self._forks.child(self._loop, fault):
                self._faults.clear()
                self._is_child = True
                self._run.suffer((fault,))
                return FAULT_KINDS[fault.kind].effect(fault)
        if self.over:
            self._loop.stop()
        return None

    @property
    def left(self) -> Sequence[Fault]:
        """Return the faults whose points were not reached."""
        return [fault for faults in self._faults.values() for fault in faults]

    @property
    def over(self) -> bool:
        """Report whether all faults have been tried, so that the undisturbed run can end."""
        return not self._is_child and not self._faults


class Forks:
    """The children, one at a time, and their reports."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self._pipe: int | None = None  # to the parent, in a child
        self._fault: Fault | None = None

    def child(self, loop: SimulatedLoop, fault: Fault | None) -> bool:
        """Fork. Returns True in the child; False in the parent, once the child has reported."""
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(reading)
            signal.setitimer(signal.ITIMER_PROF, CHILD_SECONDS)
            asyncio._set_running_loop(loop)  # asyncio takes a loop of another process for none
            self._pipe, self._fault = writing, fault
            return True
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            answer = pipe.read()
        os.waitpid(process, 0)
        self.reports.append(msgspec.msgpack.decode(answer, type=Report) if answer else Report(_DIED, fault))
        return False

    def report(self, outcome: Outcome, points: Sequence[Point] = ()) -> None:
        """In a child, send the report and exit at once, without cleaning up. In the parent, do nothing."""
        if self._pipe is None:
            return
        told = Report(outcome, self._fault, () if self._fault else points)
        with os.fdopen(self._pipe, "wb") as file:
            file.write(msgspec.msgpack.encode(told))
        os._exit(0)


_DIED = Outcome(problems=(f"the run died, or took more than {CHILD_SECONDS} s of a core",))
