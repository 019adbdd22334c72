"""The arithmetic of a pass (cloneset.md §4.3, §8.1)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flotilla_cloneset.cloneset.numbers import Side, Targets, quantities, targets
from tests.unit.cloneset.build import cloneset


@pytest.mark.parametrize(
    ("replicas", "unavailable", "surge", "expected"),
    [
        (3, None, None, (1, 0)),
        (4, "20%", 0, (1, 0)),
        (5, "20%", 0, (1, 0)),
        (10, "20%", 0, (2, 0)),
        (4, "20%", 1, (0, 1)),
        (6, "20%", 1, (1, 1)),
        (10, "25%", "25%", (2, 3)),
        (5, 0, "20%", (0, 1)),
        (0, "50%", "50%", (0, 0)),
        (8, "12.5%", 0, (1, 0)),
        (100, "5", 0, (5, 0)),
        (10, "many", "lots", (0, 0)),
    ],
)
def test_percentages(replicas: int, unavailable: Any, surge: Any, expected: tuple[int, int]) -> None:
    builder = cloneset().replicas(replicas)
    if unavailable is not None:
        builder.max_unavailable(unavailable).max_surge(surge)
    want = targets(builder.build())
    assert (want.max_unavailable, want.max_surge) == expected
    assert bool(want.problems) == (unavailable == "many")


def test_on_delete() -> None:
    want = targets(cloneset().replicas(4).on_delete().build())
    assert (want.max_unavailable, want.max_surge, want.partition, want.expected_updated) == (0, 0, 0, 4)


def test_paused_has_no_surge() -> None:
    want = targets(cloneset().replicas(4).max_surge(2).paused().build())
    assert (want.max_surge, want.max_unavailable) == (0, 1)


SIDES = st.builds(Side, st.integers(0, 9), st.just(0), st.just(0), st.just(0))


@given(new=SIDES, old=SIDES, replicas=st.integers(0, 9), surge=st.integers(0, 4), partition=st.integers(0, 9))
def test_bounds(new: Side, old: Side, replicas: int, surge: int, partition: int) -> None:
    want = Targets(replicas=replicas, partition=min(partition, replicas), max_surge=surge, max_unavailable=1)
    numbers = quantities(want, new, old, rollback=False, exclude_preparing=False)
    assert 0 <= numbers.use_surge <= surge
    assert numbers.total + numbers.scale_up <= max(replicas + surge, numbers.total)
    assert numbers.total - numbers.scale_down >= min(replicas, numbers.total)
    assert not (numbers.scale_up and numbers.scale_down)
    assert 0 <= numbers.update <= old.all
