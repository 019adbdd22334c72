"""Shows that a guard is needed: without it, runs fail that pass with it."""

from collections.abc import Callable

import pytest

from tests.simulation.oracles.outcome import Outcome, differences
from tests.simulation.perturbation.fault import Fault
from tests.simulation.perturbation.play import run, undisturbed
from tests.simulation.scenarios import every_scenario

Removal = Callable[[pytest.MonkeyPatch], None]
"""Removes a guard from the code."""


def each(*kinds: str, points: int = 8, first: int = 0) -> list[list[str]]:
    """Return the same faults at several points: which one matters depends on the order of the service's writes."""
    return [[kind.format(number, number + 2) for kind in kinds] for number in range(first, first + points)]


def passes(scenario: str, faults: list[str], reference: Outcome) -> bool:
    """Report whether the scenario passes with these faults as it does without (`reference`)."""
    played = every_scenario()[scenario]
    outcome = run(played, [Fault.parse(text) for text in faults])[0] if faults else reference
    return not [*outcome.problems, *differences(reference, outcome, exact=played.exact)]


def shown_to_be_needed(
    remove: Removal, scenario: str, attempts: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Show that some attempt (the faults of one run) passes with the guard, and fails without it."""
    guarded, unguarded = undisturbed(scenario)[0], None
    told = "the simulation fails with the guard in place"
    for faults in attempts:
        if not passes(scenario, faults, guarded):
            continue
        told = "the simulation passes without the guard"
        with monkeypatch.context() as patch:
            remove(patch)
            if unguarded is None:
                unguarded = run(every_scenario()[scenario])[0]
            if not passes(scenario, faults, unguarded):
                return
    raise AssertionError(told)
