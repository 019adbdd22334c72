"""Every scenario without a fault: no rule is broken, the end is as promised, and afterwards nothing is written."""

import pytest

from tests.simulation.perturbation.play import run, undisturbed
from tests.simulation.scenarios import every_scenario
from tests.simulation.trace import format_history


@pytest.mark.parametrize("name", every_scenario())
def test_scenario(name: str) -> None:
    outcome, history = undisturbed(name)
    assert not outcome.problems, "\n".join([*outcome.problems, *format_history(history)])


def test_the_same_run_makes_the_same_history() -> None:
    histories = [run(every_scenario()["surged-by-recreation"])[2] for _ in range(2)]
    assert histories[0].versions == histories[1].versions
    assert histories[0].calls == histories[1].calls
