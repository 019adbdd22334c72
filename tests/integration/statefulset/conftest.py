"""One namespace per scenario, on the control plane that all share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.resources import POD
from tests.support.fleet import Fleet
from tests.support.workspace import Workspace, watched


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first scenario waits for the control plane, too; on a busy machine that takes half a minute."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture
def space(shared: Fleet, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """A fresh namespace, named after the test."""
    with watched(shared.cluster, request.node.nodeid, POD, STATEFUL_SET) as made:
        yield made
