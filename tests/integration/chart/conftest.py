"""helm, for tests that look at what the chart makes of values."""

import asyncio

import pytest

from tests.support.helm import Helm, helm


@pytest.fixture(scope="session")
def chart() -> Helm:
    """Return helm without a cluster, built on first use."""
    return asyncio.run(helm())
