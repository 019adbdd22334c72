"""Shows that a guard is needed: without it, runs fail that pass with it."""

from collections.abc import Callable

import pytest

from tests.simulation.oracles.outcome import differences
from tests.simulation.perturbation.fault import Fault
from tests.simulation.perturbation.play import run
from tests.simulation.scenarios import every_scenario

Removal = Callable[[pytest.MonkeyPatch], None]
"""Removes a guard from the code."""


def each(*kinds: str, points: int = 8, first: int = 0) -> list[list[str]]:
    """Return the same faults at several points: which one matters depends on the order of the service's writes."""
    return [[kind.format(number, number + 2) for kind in kinds] for number in range(first, first + points)]


def passes(scenario: str, faults: list[str]) -> bool:
    """Report whether the scenario passes with these faults as it does without."""
    played = every_scenario()[scenario]
    parsed = [Fault.parse(text) for text in faults]
    outcome, _, _ = run(played, parsed)
    reference, _, _ = run(played)
    return not [*outcome.problems, *differences(reference, outcome, exact=played.exact)]


def shown_to_be_needed(
    remove: Removal, scenario: str, attempts: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Show that some attempts (the faults of one run each) pass with the guard, and one of those fails without it."""
    telling = [faults for faults in attempts if passes(scenario, faults)]
    assert telling, "the simulation fails with the guard in place"
    remove(monkeypatch)
    assert not all(passes(scenario, faults) for faults in telling)
