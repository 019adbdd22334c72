"""A user's change at every moment of a pod's start: the kubelet may begin with what was wanted a moment ago."""

import pytest

from tests.simulation.perturbation.play import run
from tests.simulation.scenarios.manifests import cloneset, image, running, spec
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.steps import Sleep
from tests.simulation.trace import format_history

MOMENTS = [*(number * 0.01 for number in range(25)), *(0.21 + number * 0.0005 for number in range(40))]
"""Fake seconds after the user asked for the pod: from when it is made until it runs, and closely when it starts."""


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_update_in_place_as_a_pod_starts(moment: float) -> None:
    scenario = Scenario(
        name=f"updated {moment:g} s after the scale-out",
        given=running(cloneset(1)),
        when=(spec(replicas=2), Sleep(seconds=moment), image("two")),
        then=End(pods={"two": 2}),
        exact=False,
    )
    outcome, _, history = run(scenario)
    assert not outcome.problems, "\n".join([*outcome.problems, *format_history(history)])
