"""One namespace per scenario, on the shared control plane."""

from collections.abc import Iterator

import pytest

from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from tests.support.fleet import Fleet
from tests.support.workspace import Workspace, watched


@pytest.fixture
def space(request: pytest.FixtureRequest, shared: Fleet) -> Iterator[Workspace]:
    """Yield a fresh namespace, named after the test. Its budget protects no pod from the end of the test."""
    with watched(shared.cluster, request.node.nodeid, POD_UNAVAILABLE_BUDGET) as made:
        yield made
    shared.cluster.kubectl("delete", "namespace", made.name, "--wait=false")
