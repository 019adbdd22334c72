"""Runs scripts by seed, over all cores, and shrinks those that fail."""

import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from tests.simulation.exploration.broadcast_script import BroadcastScript, draw_for_broadcasts
from tests.simulation.exploration.daemon_script import DaemonScript, draw_for_daemons
from tests.simulation.exploration.node_script import NodeScript, draw_for_nodes
from tests.simulation.exploration.script import Script, draw
from tests.simulation.exploration.set_script import SetScript, draw_for_sets
from tests.simulation.perturbation.play import run
from tests.simulation.perturbation.sweep import REPLAY, cores
from tests.support.bound import end_with_parent

AnyScript = Script | SetScript | DaemonScript | BroadcastScript | NodeScript
S = TypeVar("S", bound=AnyScript)

NODES_EVERY = 5
"""The period of seeds about nodes, the last of each period.

The one before it is about a StatefulSet, and the one before that about a DaemonSet, or every second time about a
BroadcastJob.
"""

MOST_SHRINKS = 200
"""Runs that are spent on making one failing script smaller."""


class Found(msgspec.Struct, frozen=True):
    """A script that fails."""

    script: AnyScript
    problems: tuple[str, ...]

    def __str__(self) -> str:
        told = "".join(f"\n    {problem}" for problem in self.problems)
        return (
            f"seed {self.script.seed}, shrunk to {len(self.script.steps)} steps and {len(self.script.faults)} faults"
            f"{told}\n    replay: {REPLAY} seed:{self.script.seed}\n    shrunk: {REPLAY} '{self.script}'"
        )


def script_of(seed: int) -> AnyScript:
    """Return the script of a seed."""
    per_node = draw_for_broadcasts if seed // NODES_EVERY % 2 else draw_for_daemons
    about = {NODES_EVERY - 1: draw_for_nodes, NODES_EVERY - 2: draw_for_sets, NODES_EVERY - 3: per_node}
    return about.get(seed % NODES_EVERY, draw)(seed)


def attempt(script: AnyScript) -> tuple[str, ...]:
    """Run a script. Returns its problems; empty for none."""
    try:
        outcome, _, _ = run(script.scenario(), script.faults, seed=script.seed)
    except Exception:  # noqa: BLE001 - whatever ends the run is what it came to
        return (traceback.format_exc(),)
    return outcome.problems


def shrink(script: S, fails: Callable[[S], bool]) -> S:
    """Leave out steps and faults, one at a time, as long as it still fails."""
    left = MOST_SHRINKS
    smaller = True
    while smaller:
        smaller = False
        for candidate in _without_one(script):
            left -= 1
            if left < 0:
                return script
            if fails(candidate):
                script, smaller = candidate, True
                break
    return script


def explore_one(seed: int) -> Found | None:
    """Run the script of a seed; a failing one comes back shrunk."""
    script = script_of(seed)
    if not attempt(script):
        return None
    script = shrink(script, lambda candidate: bool(attempt(candidate)))
    return Found(script, attempt(script))


def explore(seeds: Sequence[int], say: Callable[[str], None] = print) -> list[Found]:
    """Run all seeds; tells how it gets on."""
    found: list[Found] = []
    started = said = time.monotonic()
    with multiprocessing.get_context("fork").Pool(cores(), initializer=end_with_parent) as pool:
        for done, one in enumerate(pool.imap_unordered(explore_one, seeds, chunksize=4), 1):
            if one is not None:
                found.append(one)
                say(f"FAILED {one}")
            if time.monotonic() - said > 10:
                said = time.monotonic()
                say(f"{done} of {len(seeds)} seeds, {len(found)} failures")
    seconds = max(time.monotonic() - started, 0.001)
    rate = len(seeds) / seconds * 60
    say(f"{len(seeds)} seeds in {seconds:.0f} s ({rate:.0f} runs per minute on {cores()} cores), {len(found)} failures")
    return found


def _without_one(script: S) -> Iterator[S]:
    for index in range(len(script.faults)):
        yield msgspec.structs.replace(script, faults=script.faults[:index] + script.faults[index + 1 :])
    for index in range(len(script.steps)):
        yield msgspec.structs.replace(script, steps=script.steps[:index] + script.steps[index + 1 :])
