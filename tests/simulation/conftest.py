"""Options of the simulation layer."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options for the extent of sweeps and random scripts."""
    parser.addoption("--seeds", type=int, default=200, help="random scripts to explore")
    parser.addoption("--exhaustive", action="store_true", help="try all faults of all scenarios")


@pytest.fixture
def seeds(request: pytest.FixtureRequest) -> range:
    """Return the seeds to explore."""
    count = request.config.getoption("--seeds")
    assert isinstance(count, int)
    return range(count)


@pytest.fixture
def exhaustive(request: pytest.FixtureRequest) -> bool:
    """Report whether to inject all faults of all scenarios."""
    return bool(request.config.getoption("--exhaustive"))
