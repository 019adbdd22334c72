"""One namespace per scenario, on the control plane that all share, with its three nodes.

A file that names flags of the services in `FLAGS` has a control plane and services of its own, whose nodes it may
change and whose processes it may kill. The apiserver of that one keeps an audit log.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.resources import JOB
from tests.support.audit import AuditLog
from tests.support.cluster import control_plane
from tests.support.fleet import SERVICES, Fleet, fleet
from tests.support.shared_plane import KUBELET, NODES
from tests.support.workspace import Workspace, watched


class Own(NamedTuple):
    """A control plane of one file."""

    fleet: Fleet
    audit: AuditLog


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first scenario waits for its control plane, too; on a busy machine that takes half a minute."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(300))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def own(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> AsyncIterator[Own]:
    folder = tmp_path_factory.mktemp("plane")
    audit = AuditLog(folder)
    plane = control_plane(folder, nodes=NODES, kubelet=KUBELET, apiserver_flags=audit.flags)
    async with plane as cluster, fleet(cluster, (*SERVICES, "sidecar", "jobs"), flags=request.module.FLAGS) as services:
        yield Own(services, audit)


@pytest.fixture
def space(request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """A fresh namespace, named after the test."""
    private = hasattr(request.module, "FLAGS")
    flotilla: Fleet = request.getfixturevalue("own").fleet if private else request.getfixturevalue("shared")
    more = (ADVANCED_CRON_JOB, JOB) if private else ()
    with watched(flotilla.cluster, request.node.nodeid, BROADCAST_JOB, *more) as made:
        yield made
