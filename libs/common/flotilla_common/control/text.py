"""Wording of object lists in reasons and events: the first few by name, the rest as a number."""

from collections.abc import Sequence

from flotilla_common.api.meta import Object

NAMED = 5
"""Objects that a message names; the rest are counted."""


def first_names(those: Sequence[Object | str]) -> tuple[str, ...]:
    """Return the names of the first few objects; names may be given instead of objects."""
    return tuple(one if isinstance(one, str) else one.metadata.name for one in those[:NAMED])


def named(those: Sequence[Object | str], total: int = 0) -> str:
    """Return "web-1, web-2 and 3 more"; `total` counts them if `those` are only the first."""
    shown = ", ".join(first_names(those))
    more = max(total, len(those)) - min(len(those), NAMED)
    return f"{shown} and {more} more" if more else shown


def pods_word(number: int) -> str:
    """Return "1 pod", "2 pods"."""
    return _counted(number, "pod")


def nodes_word(number: int) -> str:
    """Return "1 node", "2 nodes"."""
    return _counted(number, "node")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
