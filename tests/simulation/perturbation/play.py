"""Plays one scenario with its faults, and checks the outcome."""

import dataclasses
import gc
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

from flotilla_common.api.resources import EVENT, LEASE
from flotilla_common.kube.interface import ApiError
from tests.simulation.history import History
from tests.simulation.loop import EPOCH
from tests.simulation.nodes.agent import NAME as AGENT
from tests.simulation.oracles.checker import Checker
from tests.simulation.oracles.outcome import Outcome, end_of, writes_of
from tests.simulation.oracles.view import VISIBILITY_LAG, ours
from tests.simulation.perturbation.catalogue import Setting, arm, outage, setting_of, visibility_lag
from tests.simulation.perturbation.fault import Fault, Point
from tests.simulation.perturbation.fault_injector import FaultInjector
from tests.simulation.restored_copies import RestoredCopies
from tests.simulation.scenarios import every_rule, every_scenario
from tests.simulation.scenarios.current_state import CurrentState
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import NAMESPACE_NAME, Change, Stage, Stalled
from tests.simulation.world import SETTINGS, Unsettled, World, services, simulate

T = TypeVar("T")

CONVERGENCE_SECONDS = 10.0
"""Fake seconds after a fault in which everything has to converge with the undisturbed run."""

STILL_SECONDS = 5.0
"""Fake seconds for which a settled world is watched for needless writes."""

PROMPT = dataclasses.replace(SETTINGS, nodeimage_creation_delay=0)
"""Settings that serve nodes at once when they become ready."""

TOUCH = {"metadata": {"annotations": {"touched": "yes"}}}
"""A change without an effect."""


class Run:
    """One run of a scenario, from the moment at which it counts."""

    def __init__(self, scenario: Scenario, injector: FaultInjector, world: World) -> None:
        self._scenario = scenario
        self._injector = injector
        self._world = world
        self._stage = Stage(world, CurrentState(world.history), scenario.kind)
        self._checker = Checker(EPOCH)
        RestoredCopies(world.server)
        self._problems: list[str] = []
        self._faults: Sequence[Fault] = ()
        self.points: Sequence[Point] = ()
        """The points at which it could have been disturbed."""
        self._began = 0.0
        self._settled = 0.0
        self._first = self._last = 0  # what counts of the history
        for version in world.history.versions:
            self._checker.take(version)
        world.history.listeners.append(self._checker.take)

    async def prepare(self) -> None:
        """Play the preparation."""
        for step in self._scenario.given:
            await step.play(self._stage)
        if self._scenario.at_rest:
            await self._world.settle()

    async def play(self, faults: Sequence[Fault] = ()) -> Outcome:
        """Play the steps that count, with the faults."""
        world = self._world
        for fault in faults:
            arm(self._injector, fault)
        self.suffer(faults)
        self._injector.begin(world)
        self._began, self._first = world.loop.time(), len(world.history.versions)
        try:
            await self._act()
        except (Stalled, Unsettled, ApiError) as error:
            self._problems.append(f"{type(error).__name__}: {error}")
        return self._outcome()

    def suffer(self, faults: Sequence[Fault]) -> None:
        """Count from now on as a run with these faults."""
        self._faults = faults
        self._checker.view.lag = visibility_lag(faults)

    async def _act(self) -> None:
        world, scenario = self._world, self._scenario
        for step in scenario.when:
            self._injector.step()
            await step.play(self._stage)
        if scenario.restless:
            await world.clock.sleep(CONVERGENCE_SECONDS)
        else:
            await world.settle(quiet=scenario.quiet)
        while world.loop.time() < (over := self._over()) + scenario.quiet:
            # While a fault lasts, a quiet world is not a settled one: what it kept back may come in its last moment.
            await world.clock.sleep(max(over - world.loop.time(), 0))
            await world.settle(quiet=scenario.quiet)
        self._settled = self._last_change() - self._began
        self._last = len(world.history.versions)
        self.points = tuple(self._injector.points)
        self._problems += scenario.problems(self._stage)
        if not self._faults:
            self._problems += self._in_vain()
            if not scenario.restless:
                await self._stay_still()

    def _over(self) -> float:
        """Return when all faults are over, in fake seconds; 0 without faults."""
        injected = self._injector.injected
        return injected[-1] + outage(self._faults) if injected else 0.0

    def _in_vain(self) -> Iterator[str]:
        """Yield deletions of objects that were known to be terminating already."""
        since: dict[str, float] = {}
        for version in self._world.history.versions:
            if version.after is not None and "deletionTimestamp" in version.after["metadata"]:
                since.setdefault(version.name, version.at)
        for call in self._world.history.calls:
            late = call.at - since.get(call.name, call.at) > VISIBILITY_LAG
            if late and ours(call.writer) and call.verb == "delete" and call.outcome == "ok" and not call.revision:
                yield f"a deletion that changes nothing: {call.resource.plural} {call.name}"

    async def _stay_still(self) -> None:
        """Check that neither a change without an effect nor time alone causes a write."""
        calls = self._world.history.calls
        start = len(calls)
        if self._stage.current.get(self._scenario.resource, NAMESPACE_NAME, self._scenario.workload) is not None:
            await Change(patch=TOUCH, name=self._scenario.workload).play(self._stage)
        await self._world.clock.sleep(STILL_SECONDS)
        self._problems += [
            f"a write that nobody needs: {call.verb} {call.resource.plural} {call.name}"
            for call in calls[start:]
            if ours(call.writer) and call.verb in ("create", "patch", "replace", "delete") and call.resource != LEASE
        ]

    def _outcome(self) -> Outcome:
        scenario, history = self._scenario, self._world.history
        played = history.versions[: self._last or None]
        return Outcome(
            settled=self._settled,
            end=end_of(played, NAMESPACE_NAME, exact=scenario.exact, uncertain=scenario.uncertain),
            writes=writes_of(played[self._first :]),
            problems=(*map(str, self._checker.breaches), *self._problems),
            injected=len(self._injector.injected),
        )

    def _last_change(self) -> float:
        versions = self._world.history.versions[self._first :]
        changes = [version.at for version in versions if version.resource not in (LEASE, EVENT)]
        return changes[-1] if changes else self._began


def run(
    scenario: Scenario, faults: Sequence[Fault] = (), setting: Setting | None = None, seed: int | None = None
) -> tuple[Outcome, FaultInjector, History]:
    """Play a scenario in a world of its own, with the faults.

    A `seed` varies the latency of messages and lets processes run in a random order.
    """
    injector = FaultInjector()

    async def body(world: World) -> tuple[Outcome, FaultInjector, History]:
        run = Run(scenario, injector, world)
        await run.prepare()
        return await run.play(faults), injector, world.history

    return in_world(scenario, injector, body, setting or setting_of(faults), seed)


@cache
def undisturbed(name: str) -> tuple[Outcome, History]:
    """Play a scenario without a fault, once for all tests of this process."""
    outcome, _, history = run(every_scenario()[name])
    return outcome, history


def warm_up() -> None:
    """Load and create what every world needs, so that forks of this process share it."""

    async def body(world: World) -> None:
        del world

    simulate(body, replicas=dict.fromkeys(services(), 1))
    every_rule()
    gc.collect()
    gc.freeze()


def in_world(
    scenario: Scenario,
    injector: FaultInjector,
    body: Callable[[World], Coroutine[Any, Any, T]],
    setting: Setting,
    seed: int | None = None,
) -> T:
    """Create the world that the scenario and the setting ask for, and run the body in it."""
    return simulate(
        body,
        seed=seed or 0,
        shuffle=seed is not None,
        replicas={
            "watcher": setting.watchers,
            **dict.fromkeys(scenario.services, setting.replicas),
            AGENT: scenario.agents,
        },
        skews={f"{service}-1": setting.skew for service in scenario.services},
        settings=PROMPT,
        gates=scenario.gates,
        wire=injector.wire,
        socket=injector,
    )
