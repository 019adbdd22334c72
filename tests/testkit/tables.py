"""Tables of examples."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def cases(rows: Sequence[tuple[Any, ...]] | Mapping[str, tuple[Any, ...]]) -> list[ParameterSet]:
    """Return test cases of rows by name, or of rows that begin with their names."""
    named = [(name, *row) for name, row in rows.items()] if isinstance(rows, Mapping) else rows
    return [pytest.param(*row[1:], id=row[0]) for row in named]
