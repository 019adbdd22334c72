"""Random scripts, by seed; what fails is shrunk."""

import msgspec
import pytest

from tests.simulation.exploration.explore import explore, shrink
from tests.simulation.exploration.script import Script, draw
from tests.simulation.scenarios.steps import RemovePod


@pytest.mark.timeout(7200)
def test_whatever_users_do_and_whatever_goes_wrong(seeds: range) -> None:
    found = explore(seeds)
    assert not found, f"{len(found)} seeds failed, see above"


def test_a_seed_is_a_script_and_a_script_is_text() -> None:
    script = draw(7)
    assert script == draw(7)
    assert msgspec.json.decode(str(script), type=Script) == script


def test_a_failing_script_shrinks_to_what_matters() -> None:
    script = next(one for one in map(draw, range(200)) if len(one.steps) > 4 and RemovePod in map(type, one.steps))
    small = shrink(script, lambda one: any(isinstance(step, RemovePod) for step in one.steps))
    assert [type(step) for step in small.steps] == [RemovePod]
    assert not small.faults
