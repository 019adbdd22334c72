"""Fixtures of unit tests: changes of the logs end with each test."""

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """Commands and services configure the logs of their process, which is that of all tests."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)
