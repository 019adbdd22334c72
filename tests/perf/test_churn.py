"""A DaemonSet on 1,000 nodes that come, go, are relabelled, tainted and cordoned while two updates run.

The figure is the time from the last change to the right end; the test also checks every moment before.
"""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from flotilla_common.clock import SystemClock
from tests.perf.limits import within
from tests.support.churn import POOL, churning
from tests.support.cluster import control_plane
from tests.support.daemons import IN_PLACE, NEW, OLD, daemonset
from tests.support.fleet import SERVICES, Fleet, fleet

SPACE = "default"
NODES, CHANGES = 1000, 400
LAST = "nginx:perl"

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flotilla(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    plane = control_plane(tmp_path_factory.mktemp("perf"))
    async with plane as cluster, fleet(cluster, (*SERVICES, "daemonset")) as services:
        yield services


async def apply(flotilla: Fleet, image: str, **how: str) -> None:
    """Create the DaemonSet, or give it another image and strategy."""
    pod = {"nodeSelector": {POOL: SPACE}, "containers": [{"name": "nginx", "image": image}]}
    text = json.dumps(daemonset({"maxUnavailable": "10%", **how}, pod=pod))
    await asyncio.to_thread(flotilla.cluster.kubectl, "apply", "-n", SPACE, "-f", "-", stdin=text)


async def test_a_thousand_nodes_in_motion(flotilla: Fleet) -> None:
    """The first update is in place, the other one with new pods."""
    clock = SystemClock()
    async with churning(flotilla.cluster, SPACE, range(100, 100 + NODES)) as churn:
        await apply(flotilla, OLD, **IN_PLACE)
        await churn.settled(OLD, 120)
        await apply(flotilla, NEW, **IN_PLACE)
        await churn.changes(CHANGES)
        await apply(flotilla, LAST)
        await churn.changes(CHANGES)
        since = clock.monotonic()
        await churn.settled(LAST, 180)
        within("churn_settled_seconds", clock.monotonic() - since)
        assert churn.record.crowded == []
        await churn.collected(120)
        await flotilla.healthy()
