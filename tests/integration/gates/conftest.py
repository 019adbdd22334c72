"""One control plane for all files of this folder, whose services have every feature gate that its tests are about.

A file names in `WATCHED` the resources that its scenarios look back at; the first one is its workload.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.cluster import control_plane
from tests.support.fleet import SERVICES, Fleet, fleet
from tests.support.shared_plane import KUBELET, NODES
from tests.support.workspace import Workspace, watched

GATES = (
    "CloneSetPartitionRollback",
    "CloneSetShortHash",
    "DaemonSetPruneIneligibleNodes",
    "DeletionProtectionForCRDCascadingGate",
    "KruisePodReadinessGate",
    "PodUnavailableBudgetUpdateGate",
    "PreDownloadImageForDaemonSetUpdate",
    "PreDownloadImageForInPlaceUpdate",
    "RecreatePodWhenChangeVCTInCloneSetGate",
    "StatefulSetAutoResizePVCGate",
    "StatefulSetStartOrdinal",
)
FLAGS = (f"--feature-gates={','.join(f'{gate}=true' for gate in GATES)}", "--assign-pods-by-scheduler=false")


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def flotilla(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    folder = tmp_path_factory.mktemp("gates")
    plane = control_plane(folder, nodes=NODES, kubelet=KUBELET)
    services = (*SERVICES, "statefulset", "daemonset", "sidecar", "policy")
    async with plane as cluster, fleet(cluster, services, (*FLAGS, f"--protection-log-path={folder}")) as running:
        yield running


@pytest.fixture
def protection_log(flotilla: Fleet) -> Path:
    return flotilla.cluster.plane.places.state_dir / "protection.log"


@pytest.fixture
def space(request: pytest.FixtureRequest, flotilla: Fleet) -> Iterator[Workspace]:
    with watched(flotilla.cluster, request.node.nodeid, *request.module.WATCHED) as made:
        yield made
