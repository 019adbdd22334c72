"""The final state of a scenario does not depend on the sizes of passes; and the check of that can fail."""

# pyright: reportPrivateUsage=false
# Taking a guard out means reaching into what it guards.

import subprocess
import sys
from pathlib import Path

import pytest

from flotilla_cli.local import bound_command
from flotilla_cloneset.cloneset import numbers
from flotilla_cloneset.cloneset.numbers import Targets
from tests.simulation.perturbation.passes import problems_of_cuts

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(1800)
def test_passes_of_any_size_end_in_the_same() -> None:
    """In a process of its own, which plays on all cores."""
    command = bound_command([sys.executable, "-m", "tests.simulation", "passes"])
    played = subprocess.run(command, cwd=ROOT, check=False)
    assert played.returncode == 0, "runs failed, see above"


def no_surge_in_use(patch: pytest.MonkeyPatch) -> None:
    """Only pods that are still to come are useful, as the reference reckons, which creates all in one pass."""

    def useful(
        want: Targets, deleting_new: int, deleting: int, unavailable: int, surplus_old: int, surplus_new: int
    ) -> tuple[int, int]:
        del deleting_new, deleting, unavailable
        return min(want.max_surge, abs(surplus_old), abs(surplus_new)) * (surplus_old * surplus_new < 0), 0

    patch.setattr(numbers, "_surge", useful)


def test_a_surge_that_is_not_counted_ends_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes right in passes of the usual size, in which all pods of the scenario are created at once."""
    assert not problems_of_cuts("blue-beside-green-in-one-pass")
    no_surge_in_use(monkeypatch)
    assert set(problems_of_cuts("blue-beside-green-in-one-pass")) == {"one-pod", "two-pods", "one-write"}
