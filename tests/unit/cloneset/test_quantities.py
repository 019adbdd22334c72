"""The numbers of a pass, formula by formula (cloneset.md §4.3): scenarios show only their sums."""

from typing import Any

import pytest

from flotilla_cloneset.cloneset.numbers import Side, Targets, quantities, targets
from tests.unit.cloneset.build import cloneset


def side(pods: int = 0, *, preparing: int = 0, deleting: int = 0, unavailable: int = 0) -> Side:
    return Side(pods, preparing, deleting, unavailable)


@pytest.mark.parametrize(
    ("want", "new", "old", "more", "expected"),
    [
        pytest.param(
            Targets(replicas=6, partition=2),
            side(5, preparing=2),
            side(4, preparing=1, unavailable=1),
            {"exclude_preparing": True},
            {"total": 9, "unavailable": 4, "scale_up": 0, "scale_down": 0, "scale_down_old": 1, "update": 1},
            id="pods in PreparingDelete do not count",
        ),
        pytest.param(
            Targets(replicas=3, partition=1, max_unavailable=2),
            side(),
            side(5, deleting=1, unavailable=1),
            {},
            {"scale_down": 1, "scale_down_old": 3, "delete_ready": 3},
            id="what is specified for deletion is not deleted on top",
        ),
        pytest.param(
            Targets(replicas=3),
            side(3, deleting=1, unavailable=1),
            side(),
            {},
            {"scale_down": 0, "scale_down_old": 0, "delete_ready": 0},
            id="nothing ready may go",
        ),
        pytest.param(
            Targets(replicas=3, max_unavailable=1, max_surge=1),
            side(3, deleting=1),
            side(),
            {},
            {"use_surge": 0, "scale_up": 0},
            id="no surge for a deletion that maxUnavailable covers",
        ),
        pytest.param(
            Targets(replicas=4, max_surge=1),
            side(3),
            side(1),
            {},
            {"use_surge": 1, "scale_up": 1, "scale_up_old": 0, "scale_down_old": 1},
            id="forwards, the pod above replicas is a new one",
        ),
        pytest.param(
            Targets(replicas=4, partition=3, max_surge=2),
            side(3),
            side(1),
            {"rollback": True},
            {"use_surge": 2, "scale_up": 2, "scale_up_old": 4, "update": -2},
            id="backwards, the pods above replicas are old ones",
        ),
        pytest.param(
            Targets(replicas=4, max_unavailable=1, max_surge=2),
            side(3),
            side(2, preparing=1, deleting=1),
            {},
            {"use_surge": 1, "scale_down_old": 0},
            id="as many for deletion as for the update: those for deletion say which",
        ),
        pytest.param(
            Targets(replicas=2, partition=1),
            side(2),
            side(2),
            {"rollback": True},
            {"update": 1},
            id="too many on both sides: forwards",
        ),
    ],
)
def test_quantities(want: Targets, new: Side, old: Side, more: dict[str, Any], expected: dict[str, int]) -> None:
    numbers = quantities(want, new, old, **{"rollback": False, "exclude_preparing": False, **more})
    assert {name: getattr(numbers, name) for name in expected} == expected


@pytest.mark.parametrize("on_delete", [False, True], ids=["rolling", "OnDelete"])
def test_the_limit_of_creating_is_a_share_of_replicas_rounded_up(on_delete: bool) -> None:
    builder = cloneset().replicas(10).scale(maxUnavailable="25%")
    assert targets((builder.on_delete() if on_delete else builder).build()).scale_limit == 3


def test_a_partition_that_cannot_be_read_is_0() -> None:
    want = targets(cloneset().replicas(4).partition("lots").build())
    assert want.partition == 0
    assert len(want.problems) == 1
