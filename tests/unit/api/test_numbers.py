"""Number helpers (common.md §4)."""

import pytest

from flotilla_common.api.numbers import lenient_value, partition_value, strict_value


@pytest.mark.parametrize(
    ("replicas", "partition", "kept"),
    [
        (8, "90%", 7),
        (5, "0%", 0),
        (5, "1%", 1),
        (5, "20%", 1),
        (5, "50%", 3),
        (5, "99%", 4),
        (5, "100%", 5),
        (1, "50%", 1),
        (4, "99%", 3),
        (1000, "99.95%", 999),
        (3, 10, 3),
        (0, "50%", 0),
        (5, None, 0),
        (None, "50%", 1),
        (5, -1, 0),
        (5, 5, 5),
        (5, "100.0%", 4),
        (5, "150%", 5),
    ],
)
def test_partition(replicas: int | None, partition: int | str | None, kept: int) -> None:
    assert partition_value(partition, replicas) == kept


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        (3, 10, 3, 3),
        ("20%", 4, 1, 0),
        ("25%", 10, 3, 2),
        ("12.5%", 8, 1, 1),
        ("99.95%", 1000, 1000, 999),
        ("0.1%", 1000, 1, 1),
        ("29%", 100, 29, 29),  # binary floats make 28.999… of this
        (".5%", 100, 1, 0),
        ("-10%", 10, -1, -1),
    ],
)
def test_scaled(value: int | str, total: int, up: int, down: int) -> None:
    for function in (strict_value, lenient_value):
        assert function(value, total, True) == up
        assert function(value, total, False) == down


@pytest.mark.parametrize("value", ["5", "", "%", "a%", "5%%", "1e3%", " 5%", "5 %", "٣%"])
def test_strict_refuses(value: str) -> None:
    with pytest.raises(ValueError, match="invalid value"):
        strict_value(value, 10, True)


def test_lenient_takes_a_bare_number_for_a_percentage() -> None:
    assert lenient_value("5", 100, True) == 5
    assert lenient_value("50%%", 10, True) == 5


@pytest.mark.parametrize("value", ["", "%", "a", "1.2.3"])
def test_lenient_refuses(value: str) -> None:
    with pytest.raises(ValueError, match="invalid value"):
        lenient_value(value, 10, True)


def test_partition_refuses_what_is_no_percentage() -> None:
    with pytest.raises(ValueError, match="must end with %"):
        partition_value("5", 10)
