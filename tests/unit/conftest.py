"""For unit tests: what one of them does to the logs is over when it ends."""

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """Commands and services configure the logs of their process, which is that of all tests."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)
