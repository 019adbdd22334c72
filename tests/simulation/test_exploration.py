"""Random scripts, by seed; what fails is shrunk."""

import msgspec
import pytest

from tests.simulation.exploration.explore import AnyScript, explore, script_of, shrink
from tests.simulation.exploration.node_script import draw_for_nodes
from tests.simulation.exploration.script import draw
from tests.simulation.scenarios.node_steps import StopAgent
from tests.simulation.scenarios.steps import RemovePod


@pytest.mark.timeout(7200)
def test_whatever_users_do_and_whatever_goes_wrong(seeds: range) -> None:
    found = explore(seeds)
    assert not found, f"{len(found)} seeds failed, see above"


@pytest.mark.parametrize(
    "seed", [0, 2, 3, 4, 7], ids=["clonesets", "daemonsets", "statefulsets", "nodes", "broadcastjobs"]
)
def test_a_seed_is_a_script_and_a_script_is_text(seed: int) -> None:
    script = script_of(seed)
    assert script == script_of(seed)
    assert msgspec.json.decode(str(script), type=AnyScript) == script


def test_a_failing_script_shrinks_to_what_matters() -> None:
    script = next(one for one in map(draw, range(200)) if len(one.steps) > 4 and RemovePod in map(type, one.steps))
    small = shrink(script, lambda one: any(isinstance(step, RemovePod) for step in one.steps))
    assert [type(step) for step in small.steps] == [RemovePod]
    assert not small.faults


def test_a_failing_script_about_nodes_shrinks_as_well() -> None:
    script = next(one for one in map(draw_for_nodes, range(200)) if StopAgent in map(type, one.steps) and one.faults)
    small = shrink(script, lambda one: any(isinstance(step, StopAgent) for step in one.steps))
    assert [type(step) for step in small.steps] == [StopAgent]
    assert not small.faults
