"""etcd is restored from a backup under running services: they restart from its state."""

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from flotilla_cli.local import is_alive, reap
from flotilla_common.api.resources import POD
from flotilla_common.bus import subjects
from flotilla_common.clock import SystemClock
from tests.integration.faults.conftest import FLAGS
from tests.support.cluster import control_plane, eventually
from tests.support.fleet import SERVICES, Fleet, fleet
from tests.support.scene import OLD, cloneset

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

PODS = 6
LEADING = ("watcher", "cloneset")
"""Services that cache objects by their versions; the webhook reads what it needs."""

CONTROL_PLANE = ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flotilla(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    """Run the usual services on a control plane of this file's own, whose history nothing else has a part in."""
    async with control_plane(tmp_path_factory.mktemp("plane")) as cluster, fleet(cluster, flags=FLAGS) as running:
        yield running


def images(flotilla: Fleet) -> dict[str, str]:
    """Return the image of each ready pod."""
    ready: dict[str, str] = {}
    for pod in flotilla.cluster.read("pods")["items"]:
        conditions = {one["type"]: one["status"] for one in pod["status"].get("conditions", [])}
        if conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]:
            ready[pod["metadata"]["name"]] = pod["status"]["containerStatuses"][0]["image"].rpartition("/")[2]
    return ready


async def settled(flotilla: Fleet, image: str) -> dict[str, str]:
    """Wait until all pods run the image and the status agrees; return the images."""

    def holds() -> bool:
        status: dict[str, Any] = flotilla.cluster.read("clone", "web").get("status", {})
        counts = {status.get(member) for member in ("replicas", "readyReplicas", "updatedReadyReplicas")}
        return counts == {PODS} and list(images(flotilla).values()) == [image] * PODS

    await eventually(holds, 120)
    return images(flotilla)


def roll(flotilla: Fleet, image: str) -> None:
    patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image}]
    flotilla.cluster.kubectl("patch", "clone", "web", "--type=json", "-p", json.dumps(patch))


async def exchange_etcd(flotilla: Fleet, source: Path, target: Path) -> None:
    """Copy etcd's files while nothing of the control plane runs."""
    await flotilla.kill_component(*CONTROL_PLANE)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    await flotilla.repair_control_plane()


@asynccontextmanager
async def supervised(flotilla: Fleet) -> AsyncGenerator[None]:
    """Restart processes that end, as systemd or Kubernetes do, for the time of the block."""
    clock = SystemClock()

    async def keep_running() -> None:
        while True:
            for name in list(flotilla.members):
                if not is_alive(flotilla.members[name].process):
                    reap(flotilla.members[name].process.pid)
                    await flotilla.start(name, wait=False)
            await clock.sleep(0.2)

    keeping = asyncio.create_task(keep_running())
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


async def line(flotilla: Fleet) -> str:
    """Return the line of versions in which pods are published."""
    async with flotilla.bus() as bus:
        marker = await bus.get_last(subjects.kube_stream(POD).name, subjects.kube_marker(POD))
    return "" if marker is None else subjects.line_of(marker.headers[subjects.EPOCH])


async def test_a_backup_is_restored_under_running_services(flotilla: Fleet, tmp_path: Path) -> None:
    etcd, backup = flotilla.cluster.plane.places.state_dir / "etcd", tmp_path / "backup"
    flotilla.cluster.create(cloneset("web", PODS))
    before = await settled(flotilla, OLD)
    await exchange_etcd(flotilla, etcd, backup)
    roll(flotilla, "nginx:2")
    await settled(flotilla, "nginx:2")
    flotilla.cluster.kubectl("delete", "pod", min(before), "--wait=true")
    after = await settled(flotilla, "nginx:2")
    assert after.keys() != before.keys()
    await exchange_etcd(flotilla, backup, etcd)
    async with supervised(flotilla):
        assert await settled(flotilla, OLD) == before
        roll(flotilla, "nginx:3")
        assert (await settled(flotilla, "nginx:3")).keys() == before.keys()
        assert await line(flotilla) == "1"
        for service in SERVICES:
            assert ("etcd was restored" in flotilla.members[service].log()) is (service in LEADING)
    await flotilla.healthy()
