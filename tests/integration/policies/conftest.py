"""Two replicas of the webhook, and the services of its policies, on a control plane of their own.

They are killed, with gates that are off by default, on nodes that are drained and tainted. All files of the folder
share the plane, and so one worker of pytest-xdist.
"""

from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

import pytest
import pytest_asyncio

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD
from tests.support.balancer import Webhooks, balanced_webhooks
from tests.support.cluster import control_plane
from tests.support.fleet import Fleet, fleet
from tests.support.shared_plane import KUBELET, NODES
from tests.support.workspace import Workspace, watched

FLAGS = (
    "--feature-gates=PodUnavailableBudgetUpdateGate=true,EnablePodProbeMarkerOnServerless=true",
    "--lease-duration=6",
    "--lease-retry-period=1",
    "--bus-fallback-after=6",
)
"""Shorter timeouts than the defaults, so that scenarios do not spend their time waiting."""


class Site(NamedTuple):
    """The services, and the replicas of the webhook among them."""

    flotilla: Fleet
    webhooks: Webhooks

    async def restart(self, name: str) -> None:
        """Start what was killed."""
        await (self.webhooks.start(name) if name.startswith("webhook") else self.flotilla.start(name))


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with (
        control_plane(tmp_path_factory.mktemp("plane"), nodes=NODES, kubelet=KUBELET) as cluster,
        fleet(cluster, ("watcher", "cloneset", "policy", "topology"), flags=FLAGS) as services,
        balanced_webhooks(services, 2) as webhooks,
    ):
        yield Site(services, webhooks)


@pytest.fixture
def space(request: pytest.FixtureRequest, site: Site) -> Iterator[Workspace]:
    kinds = (CLONE_SET, POD_UNAVAILABLE_BUDGET, POD_PROBE_MARKER, WORKLOAD_SPREAD)
    with watched(site.flotilla.cluster, request.node.nodeid, *kinds) as made:
        yield made
