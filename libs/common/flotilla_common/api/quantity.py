"""Kubernetes quantities: canonical text and exact comparison (common.md §7.2)."""

from decimal import Decimal


def parse(text: str | float) -> Decimal:
    """The exact number. Raises ValueError for what is no quantity."""
    raise NotImplementedError


def canonical(text: str | float) -> str:
    """The text that Kubernetes writes for the quantity: `1000m` is `1`, `0.5` is `500m`, `1024Mi` is `1Gi`."""
    raise NotImplementedError


def equal(left: str | float, right: str | float) -> bool:
    """Whether both mean the same number, however written."""
    raise NotImplementedError
