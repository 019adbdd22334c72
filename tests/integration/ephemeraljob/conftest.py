"""One namespace per scenario, on the control plane that all share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from flotilla_common.api.kinds.ephemeraljob.types import EPHEMERAL_JOB
from tests.support.fleet import Fleet
from tests.support.workspace import Workspace, watched


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first scenario waits for its control plane, too; on a busy machine that takes half a minute."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture
def space(shared: Fleet, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """A fresh namespace, named after the test."""
    with watched(shared.cluster, request.node.nodeid, EPHEMERAL_JOB) as made:
        yield made
