"""Quantities; the expected texts were printed by Kubernetes' own implementation."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flotilla_common.api.quantity import canonical, equal, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1.5Ki", "1536"),
        ("0.5Ki", "512"),
        ("1.1Ki", "1126400m"),
        (".5", "500m"),
        ("0", "0"),
        ("0Ki", "0"),
        ("0.000", "0"),
        ("-0.1m", "-100u"),
        ("0.0000000001", "1n"),
        ("1000", "1k"),
        ("1000k", "1M"),
        ("2000G", "2T"),
        ("1024", "1024"),
        ("2048Ki", "2Mi"),
        ("1e3", "1e3"),
        ("100e3", "100e3"),
        ("1000e0", "1e3"),
        ("1.50", "1500m"),
        ("1.0001", "1000100u"),
        ("10E", "10E"),
        (0.5, "500m"),
        (2, "2"),
    ],
)
def test_canonical(text: str | float, expected: str) -> None:
    assert canonical(text) == expected


@pytest.mark.parametrize("text", ["", ".", "m", "1K", "1mi", "--1", "1 Gi", "1e", "0x1", "NaN", "Infinity", "1_000"])
def test_invalid(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        canonical(text)


def test_hostile_exponents_are_cheap() -> None:
    assert parse("1e999999999") > Decimal(10) ** 20
    assert canonical("1e-999999999") == "1e-9"


def test_equality_is_exact() -> None:
    assert equal("1", "1000m")
    assert equal("1Gi", 1024**3)
    assert not equal("1G", "1Gi")


SUFFIXES = st.sampled_from(["", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "e-3"])
NUMBERS = st.decimals(0, 10**6, allow_nan=False, allow_infinity=False, places=3)


@given(number=NUMBERS, suffix=SUFFIXES)
def test_canonical_is_stable_and_keeps_the_number(number: Decimal, suffix: str) -> None:
    text = f"{number:f}{suffix}"
    once = canonical(text)
    assert canonical(once) == once
    assert equal(once, text)
