"""Tables of examples."""

from collections.abc import Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def cases(rows: Sequence[tuple[Any, ...]]) -> list[ParameterSet]:
    """Return test cases of rows that begin with their names."""
    return [pytest.param(*row[1:], id=row[0]) for row in rows]
