"""The time until a killed service writes again, under `flotilla run --split` (docs/performance.md)."""

import os
import signal
import statistics
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
import pytest_asyncio

from flotilla_common.api.resources import POD
from tests.integration.test_run import Run, install, running
from tests.perf.kills import KINDS, Victim
from tests.perf.limits import within
from tests.support.cluster import Cluster, control_plane, eventually
from tests.support.recorder import Recorder

KILLS = 5
SERVICES = ("watcher", "webhook", *KINDS)
PODS = 3
"""Pods of each workload: one per node."""

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]


class Site(NamedTuple):
    cluster: Cluster
    run: Run
    seen: Recorder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("kills")
    async with control_plane(folder, nodes=PODS) as cluster:
        with running(cluster, folder, *SERVICES, "--split") as run:
            run.ports = run.ports[: len(SERVICES)]
            install(cluster, f"https://127.0.0.1:{run.webhook}")
            await eventually(run.ready, 90)
            with Recorder(cluster.rest, POD) as seen:
                await eventually(seen.begun)
                yield Site(cluster, run, seen)


@pytest.mark.parametrize("service", KINDS)
async def test_a_killed_service_writes_again(site: Site, service: str) -> None:
    """Its pods are deleted as it dies; the next one is made as soon as it is back."""
    victim = Victim(site.cluster, site.seen, service, PODS, nodes={})
    took: list[float] = []
    for _ in range(KILLS):
        await eventually(site.run.ready)
        took.append(
            await victim.seconds_from_kill_to_write(
                lambda: os.kill(site.run.child(f"run {service}"), signal.SIGKILL),
            )
        )
    print(f"\n{service}: {' '.join(f'{one:.1f}' for one in took)}, median {statistics.median(took):.1f} s")
    within("seconds_from_kill_to_write", max(took))
