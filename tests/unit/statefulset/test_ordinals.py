"""The ordinals that a set wants (statefulset.md §4.2)."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flotilla_statefulset.ordinals import MAX_ORDINAL, Ordinals, ordinal_of
from tests.support.timing import within
from tests.unit.statefulset.build import planned, sts, summary

ranges = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)).map(lambda one: (one[0], one[0] + one[1])))


@pytest.mark.parametrize(
    ("start", "replicas", "reserved", "wanted"),
    [
        (0, 3, [], [0, 1, 2]),
        (0, 4, [(1, 1)], [0, 2, 3, 4]),
        (0, 4, [(3, 3), (1, 1)], [0, 2, 4, 5]),
        (0, 3, [(2, 5), (0, 0)], [1, 6, 7]),
        (2, 4, [(1, 1), (3, 3)], [2, 4, 5, 6]),
        (0, 2, [(0, 2_000_000_000)], [2_000_000_001, 2_000_000_002]),
        (0, 2, [(1, 4), (2, 3), (4, 6)], [0, 7]),
        (5, 0, [], []),
        (0, 2, [(0, MAX_ORDINAL)], []),
    ],
)
def test_wanted(start: int, replicas: int, reserved: list[tuple[int, int]], wanted: list[int]) -> None:
    ordinals = Ordinals.of(start, replicas, reserved)
    assert list(ordinals) == wanted
    assert len(ordinals) == len(wanted)
    assert [ordinals.rank(one) for one in wanted] == list(range(len(wanted)))


@given(st.integers(0, 20), st.integers(0, 20), ranges)
def test_as_counted_one_by_one(start: int, replicas: int, reserved: list[tuple[int, int]]) -> None:
    taken = {one for first, last in reserved for one in range(first, last + 1)}
    expected = [one for one in range(start, start + replicas + 200) if one not in taken][:replicas]
    ordinals = Ordinals.of(start, replicas, reserved)
    assert list(ordinals) == expected
    everyone = range(-1, start + replicas + 200)
    assert [one for one in everyone if one in ordinals] == ordinals.among(everyone) == expected


@pytest.mark.parametrize(
    ("pod", "owner", "ordinal"),
    [
        ("web-0", "web", 0),
        ("web-12", "web", 12),
        ("web-1-0", "web", -1),
        ("web-1-0", "web-1", 0),
        ("web-", "web", -1),
        ("web", "web", -1),
        ("web-01", "web", -1),
        ("web-x", "web", -1),
        ("web-²", "web", -1),
        (f"web-{MAX_ORDINAL}", "web", MAX_ORDINAL),
        (f"web-{MAX_ORDINAL + 1}", "web", -1),
        ("other-0", "web", -1),
    ],
)
def test_ordinals_in_names(pod: str, owner: str, ordinal: int) -> None:
    assert ordinal_of(pod, owner) == ordinal


@pytest.mark.parametrize("replicas", [5_000_000, 2**31 - 1])
def test_a_pass_costs_what_it_does_and_not_what_replicas_says(replicas: int) -> None:
    tracemalloc.start()
    try:
        with within(1.0):
            result = planned(sts(replicas).m("50%"), "0A 1A 2A")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 << 20
    assert result.numbers["unavailable"] == replicas - 3
    assert f"of {replicas - 3} missing pods" in next(one.message for one in result.reasons if one.code == "ScalingUp")


def test_a_pass_of_a_large_set_creates_more() -> None:
    there = " ".join(f"{ordinal}A" for ordinal in range(5_000))
    created = [one for one in summary(planned(sts(10_000), there)) if one.startswith("create")]
    assert len(created) == 50
