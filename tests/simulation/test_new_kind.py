"""A kind that is added by its own files alone is simulated as the others are: every fault at every point."""

from datetime import datetime

import msgspec
import pytest

from flotilla_common.api.kinds.kind import Kind
from flotilla_common.control.plan import Plan
from tests.sample import controller
from tests.sample.added import added
from tests.sample.controller import Snapshot
from tests.simulation.perturbation.play import run
from tests.simulation.perturbation.sweep import sweep_unit, units
from tests.simulation.scenarios import every_scenario
from tests.simulation.trace import format_history

__all__ = ["added"]

NAMES = ("sample-made", "sample-removed", "sample-scaled")


def test_its_scenarios_are_found(added: Kind) -> None:
    assert {name for name in every_scenario() if name.startswith("sample-")} == {*NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_its_scenarios_end_well(name: str, added: Kind) -> None:
    outcome, _, history = run(every_scenario()[name])
    assert not outcome.problems, "\n".join([*outcome.problems, *format_history(history)])


@pytest.mark.parametrize("name", NAMES)
def test_no_fault_changes_its_end(name: str, added: Kind) -> None:
    tallies = [sweep_unit(unit) for unit in units([name], 1, 0, exhaustive=True)]
    assert sum(tally.runs for tally in tallies) > 10
    assert [str(failure) for tally in tallies for failure in tally.failures] == []


def test_a_controller_that_does_nothing_fails_its_scenarios(added: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    def idle(snapshot: Snapshot, now: datetime) -> Plan:
        return Plan()

    monkeypatch.setattr(controller, "PARTS", (msgspec.structs.replace(controller.CONTROLLER, plan=idle),))
    outcome, _, _ = run(every_scenario()["sample-made"])
    assert "there are 0 ConfigMaps, not 3" in outcome.problems
