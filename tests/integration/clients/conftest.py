"""Programs of others that use our kinds, each in a namespace of its own on the control plane that all share."""

from collections.abc import Iterator

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from tests.support.fleet import Fleet
from tests.support.rest import Rest
from tests.support.workspace import Workspace, watched


@pytest.fixture
def space(shared: Fleet, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """Yield a fresh namespace, named after the test."""
    workload = getattr(request.module, "WORKLOAD", CLONE_SET)
    others = {CLONE_SET, STATEFUL_SET, DAEMON_SET} - {workload}
    with watched(shared.cluster, request.node.nodeid, workload, *others) as made:
        yield made


@pytest.fixture
def rest(shared: Fleet) -> Rest:
    return Rest(shared.cluster.kubeconfig)
