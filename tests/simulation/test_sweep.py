"""Inject faults at every point of every scenario: each thirtieth in an ordinary run, all in a nightly run."""

import subprocess
import sys
from pathlib import Path

import pytest

from flotilla_cli.local import bound_command
from tests.simulation.perturbation.sweep import units
from tests.simulation.scenarios import every_scenario

ORDINARY = "30"
"""The step of an ordinary sweep: it injects each thirtieth fault.

With all kinds this takes some five minutes of a core.
"""

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(7200)
def test_nothing_that_goes_wrong_changes_the_end(exhaustive: bool) -> None:
    """In a process of its own: each of its thousands of forks would copy what pytest has loaded."""
    words = ["exhaustive", "1", "0"] if exhaustive else ["slice", ORDINARY, "0"]
    command = bound_command([sys.executable, "-m", "tests.simulation", *words])
    swept = subprocess.run(command, cwd=ROOT, check=False)
    assert swept.returncode == 0, "runs failed, see above"


@pytest.mark.parametrize("every", [3, 4])
def test_all_slices_together_try_each_fault_once(every: int) -> None:
    names = list(every_scenario())[:5]
    whole = {(unit.scenario, unit.setting) for unit in units(names, 1, 0, exhaustive=True)}
    slices = [unit for first in range(every) for unit in units(names, every, first, exhaustive=True)]
    for scenario, setting in whole:
        taken = [unit for unit in slices if (unit.scenario, unit.setting) == (scenario, setting)]
        assert sorted(number for unit in taken for number in range(60)[unit.first :: unit.every]) == list(range(60))
