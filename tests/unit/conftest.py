"""Fixtures of unit tests: changes of the logs end with each test."""

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """Restore the log configuration: commands and services change that of the process, which all tests share."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)
