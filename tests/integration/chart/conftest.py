"""helm, for tests that look at what the chart makes of values."""

import asyncio

import pytest

from tests.support.helm import Helm, helm


@pytest.fixture(scope="session")
def chart() -> Helm:
    """helm without a cluster. The first test of a machine that has none builds it."""
    return asyncio.run(helm())
