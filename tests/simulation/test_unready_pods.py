"""Pods count as available when a watch shows them Ready, not when their gate is opened.

With gates as readiness, the next replica would give back the half-begun updates of a crashed one, and spend them again
at once.
"""

from types import ModuleType

import pytest

from flotilla_cloneset.cloneset import classification
from flotilla_common.api.core import Pod
from flotilla_common.api.keys import IN_PLACE_READY
from flotilla_statefulset.statefulset import pods
from tests.simulation.perturbation.removal import each, shown_to_be_needed


@pytest.mark.parametrize(
    ("module", "scenario", "service"),
    [
        (classification, "many-interrupted-at-once", "cloneset"),
        (pods, "set-many-interrupted-at-once", "statefulset"),
    ],
    ids=["cloneset", "statefulset"],
)
def test_with_gates_for_readiness_the_simulation_fails(
    module: ModuleType, scenario: str, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_gates(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(module, "is_serving", _is_open)

    attempts = each(f"half-begun@{service}-0:{{}}", points=3)
    shown_to_be_needed(by_gates, scenario, attempts, monkeypatch)


def _is_open(pod: Pod) -> bool:
    condition = pod.conditions.get(IN_PLACE_READY)
    return pod.status.phase == "Running" and (condition is None or condition.status == "True")
