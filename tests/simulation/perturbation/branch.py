"""Many runs from one beginning: the process forks once the `given` part of a scenario stands.

Starting a world and playing what is given takes as long as the part that counts, and is the same for every fault. A
simulated world has no threads, sockets or timers outside of the process, so a fork is a perfect copy of it. The parent
never goes on itself: it forks one child after the other, each of which goes on with another fault and reports.
"""

import asyncio
import contextlib
import gc
import os
import signal
import traceback
from collections.abc import Generator, Sequence

import msgspec

from tests.simulation.oracles.outcome import Outcome
from tests.simulation.perturbation.fault import Fault, Point
from tests.simulation.perturbation.kinds import Setting
from tests.simulation.perturbation.play import Run, in_world
from tests.simulation.perturbation.saboteur import Saboteur
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.world import World

CHILD_SECONDS = 60
"""Real seconds after which a run is given up; it takes a tenth of a second."""


class Report(msgspec.Struct, frozen=True):
    """What one run came to, and the points that it passed."""

    outcome: Outcome
    points: Sequence[Point] = ()


Plan = Generator[Fault | None, Report, None]
"""Yields the fault of the next run (or None for an undisturbed one), and is sent its report."""


class _Finished(Exception):
    """The plan is carried out."""


def branch(scenario: Scenario, setting: Setting, plan: Plan) -> None:
    """Carry out the plan in worlds of this setting."""
    saboteur = Saboteur()

    async def body(world: World) -> None:
        run = Run(scenario, saboteur, world)
        await run.prepare()
        fault, pipe = _fork_each(plan)
        asyncio._set_running_loop(world.loop)  # asyncio takes a loop of another process for none
        try:
            outcome = await run.play((fault,) if fault else ())
        except BaseException:  # noqa: BLE001 - whatever ends the run is what it came to
            outcome = Outcome(problems=(traceback.format_exc(),))
        _send(pipe, Report(outcome, () if fault else run.points))

    with contextlib.suppress(_Finished):
        in_world(scenario, saboteur, body, setting)


def _fork_each(plan: Plan) -> tuple[Fault | None, int]:
    """Returns in every child, with its fault and where to report. In the parent it raises _Finished."""
    gc.freeze()  # what is there now is shared with the children for as long as nobody touches it
    try:
        fault = next(plan)
        while True:
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(reading)
                signal.alarm(CHILD_SECONDS)
                return fault, writing
            os.close(writing)
            with os.fdopen(reading, "rb") as pipe:
                answer = pipe.read()
            os.waitpid(child, 0)
            fault = plan.send(msgspec.msgpack.decode(answer, type=Report) if answer else _DIED)
    except StopIteration:
        raise _Finished from None


_DIED = Report(Outcome(problems=(f"the run died, or took more than {CHILD_SECONDS} s",)))


def _send(pipe: int, report: Report) -> None:
    """Report and end at once: the world is left as it is."""
    with os.fdopen(pipe, "wb") as file:
        file.write(msgspec.msgpack.encode(report))
    os._exit(0)
