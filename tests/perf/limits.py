"""Figures against their limits in thresholds.toml, where each has its provenance."""

import tomllib
from pathlib import Path

LIMITS = tomllib.loads((Path(__file__).parent / "thresholds.toml").read_text(encoding="utf-8"))


def within(figure: str, value: float) -> None:
    """Print a figure, and hold it against its limit."""
    print(f"\n{figure}: {value:.3f} (limit {LIMITS[figure]})")
    assert value <= LIMITS[figure]


def at_least(figure: str, value: float) -> None:
    """Print a figure, and hold it against its lower limit."""
    print(f"\n{figure}: {value:.3f} (at least {LIMITS[figure]})")
    assert value >= LIMITS[figure]
