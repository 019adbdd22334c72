"""Reserved ordinals as users write them (statefulset.md §3.2, §4.2)."""

import pytest

from flotilla_common.api.kinds.statefulset.types import is_range, reserved
from flotilla_common.api.meta import IntOrString


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param([1, 0], [(1, 1), (0, 0)], id="numbers"),
        pytest.param([0, "2-5"], [(0, 0), (2, 5)], id="a range, both ends included"),
        pytest.param(["7-7"], [(7, 7)], id="of one"),
        pytest.param(["0-2000000000"], [(0, 2_000_000_000)], id="huge ranges are not expanded"),
    ],
)
def test_reserved(items: list[IntOrString], expected: list[tuple[int, int]]) -> None:
    assert reserved(items) == expected


@pytest.mark.parametrize("text", ["", "5", "1-", "-1", "1-2-3", "a-b", "1 - 2", "²-³", "1-2\n"])
def test_other_texts_are_no_ranges(text: str) -> None:
    assert not is_range(text)
    with pytest.raises(ValueError, match="is not a range of ordinals"):
        reserved([1, text])


def test_a_range_does_not_end_before_it_starts() -> None:
    assert is_range("5-3")
    with pytest.raises(ValueError, match="'5-3' ends before it starts"):
        reserved(["5-3"])
