"""One namespace per scenario, on the control plane that all share; runs of all kinds are watched."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.resources import JOB
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
    runs = (JOB, BROADCAST_JOB, IMAGE_LIST_PULL_JOB)
    with watched(shared.cluster, request.node.nodeid, ADVANCED_CRON_JOB, *runs) as made:
        yield made
