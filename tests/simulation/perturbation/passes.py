"""The final state of a scenario must not depend on how its writes are divided into passes.

A pass writes only a part of the plan: creates come in slow start, writes are rejected for a while, replies are lost,
processes crash. The next pass starts from what exists by then, and must reach the same final state. So every scenario
is played in passes that write less, or more, than usual, and must end in the same pods and revisions as otherwise. The
number of writes on the way may differ.
"""

import multiprocessing
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from unittest.mock import patch

import msgspec

from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.resources import POD
from flotilla_common.control.executor import Executor, Report
from flotilla_common.control.fence import Fence
from flotilla_common.control.plan import Chain, Create, ObjectRef, Plan, Stage
from flotilla_common.workload import pod_creation
from tests.simulation.history import History
from tests.simulation.oracles.outcome import Outcome, differences
from tests.simulation.perturbation.catalogue import Setting
from tests.simulation.perturbation.fault_injector import FaultInjector
from tests.simulation.perturbation.forks import variants
from tests.simulation.perturbation.play import Run, in_world, warm_up
from tests.simulation.perturbation.sweep import REPLAY, cores
from tests.simulation.scenarios import every_scenario
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.world import World
from tests.support.bound import end_with_parent

UNLIMITED = 1_000_000


class Cut(msgspec.Struct, frozen=True):
    """The limits of one pass."""

    pods: int = UNLIMITED  # that it creates
    writes: int = UNLIMITED  # chains of each stage, about whatever objects
    last: bool = False  # the first ones are left out instead of the last ones

    def part_of(self, plan: Plan) -> Plan:
        """Return the part of a plan that one pass writes.

        As after a failure, no stage follows an incomplete one that must be complete.
        """
        pods = self.pods
        stages: list[Stage] = []
        for stage in plan.stages:
            kept: list[Chain] = []
            writes = self.writes
            for chain in reversed(stage.chains) if self.last else stage.chains:
                makes_pod = isinstance(chain[-1], Create) and chain[-1].resource == POD
                if writes > 0 and (pods > 0 or not makes_pod):
                    kept.append(chain)
                    writes -= 1
                    pods -= makes_pod
            stages.append(msgspec.structs.replace(stage, chains=tuple(kept)))
            if len(kept) < len(stage.chains) and stage.stop_on_failure:
                break
        return msgspec.structs.replace(plan, stages=tuple(stages))


CUTS: Mapping[str, Cut] = {
    "one-pod": Cut(pods=1),
    "two-pods": Cut(pods=2, last=True),
    "all-pods": Cut(),
    "one-write": Cut(writes=1),
}
"""The limits by name. `all-pods`: also those that slow start leaves to later passes."""

POD_MAKERS = frozenset({CLONE_SET.kind, STATEFUL_SET.kind, DAEMON_SET.kind, BROADCAST_JOB.kind})
"""Kinds whose plans create pods."""


def cuts_for(scenario: Scenario) -> Sequence[str]:
    """Return the names of the limits that matter to a scenario: where we create no pods, their number does not."""
    return tuple(CUTS) if scenario.kind in POD_MAKERS and not scenario.agents else ("one-write",)


@contextmanager
def cut_into(cut: Cut) -> Generator[None]:
    """Limit the passes of all services inside the context."""
    whole = Executor.run

    async def part(executor: Executor, subject: ObjectRef, plan: Plan, fence: Fence, trace: str) -> Report:
        return await whole(executor, subject, cut.part_of(plan), fence, trace)

    with patch.object(Executor, "run", part), patch.object(pod_creation, "BATCHES_PER_PASS", 10):
        yield


def run_in_passes(scenario: Scenario, cut: Cut) -> tuple[Outcome, History]:
    """Play a scenario with limited passes from the moment at which it counts."""
    injector = FaultInjector()

    async def body(world: World) -> tuple[Outcome, History]:
        one = Run(scenario, injector, world)
        await one.prepare()
        with cut_into(cut):
            return await one.play(), world.history

    return in_world(scenario, injector, body, Setting())


def problems_of_cuts(scenario: str, cuts: Sequence[str] = ()) -> Mapping[str, list[str]]:
    """Return the problems of a scenario in such passes, or in all that matter to it, by their names."""
    played = msgspec.structs.replace(every_scenario()[scenario], exact=False)
    names = cuts or cuts_for(played)
    reference, *outcomes = variants(played, [nullcontext, *(partial(cut_into, CUTS[name]) for name in names)])
    if reference.problems:
        return {"usual": list(reference.problems)}
    found: dict[str, list[str]] = {}
    for name, outcome in zip(names, outcomes, strict=True):
        if problems := [*outcome.problems, *differences(reference, outcome, exact=False)]:
            found[name] = problems
    return found


def check_passes(names: Sequence[str] = (), say: Callable[[str], None] = print) -> int:
    """Play the scenarios, or all, in passes of every sort, on all cores. Returns the number of failed runs."""
    work, failed = list(names or every_scenario()), 0
    warm_up()
    with multiprocessing.get_context("fork").Pool(cores(), initializer=end_with_parent) as pool:
        for scenario, found in zip(work, pool.imap(problems_of_cuts, work), strict=True):
            failed += len(found)
            for cut, problems in found.items():
                told = "".join(f"\n    {problem}" for problem in problems)
                say(f"FAILED {scenario} in passes of {cut}{told}\n    replay: {REPLAY} {scenario} passes:{cut}")
    say(f"{len(work)} scenarios in passes of {', '.join(CUTS)}: {failed} failures")
    return failed
