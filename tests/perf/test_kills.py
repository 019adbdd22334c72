"""How soon a service that was killed writes again, under `flotilla run --split` (docs/performance.md)."""

import asyncio
import os
import signal
import statistics
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.resources import POD, Resource
from tests.integration.test_run import Run, install, running
from tests.perf.limits import within
from tests.support.cluster import Cluster, control_plane, eventually
from tests.support.recorder import Recorder

KILLS = 5
SERVICES = ("watcher", "webhook", "cloneset", "statefulset", "daemonset")
PODS = 3
"""Of each workload: as many as nodes."""

KINDS = {"cloneset": CLONE_SET, "statefulset": STATEFUL_SET, "daemonset": DAEMON_SET}

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
            with Recorder(cluster.program("kubectl"), Path(cluster.kubeconfig), POD) as seen:
                await eventually(seen.begun)
                yield Site(cluster, run, seen)


@pytest.mark.parametrize("service", KINDS)
async def test_a_killed_service_writes_again(site: Site, service: str) -> None:
    """Its pods are deleted as it dies; the next one is made as soon as it is back."""
    site.cluster.kubectl("apply", "-f", "-", stdin=_manifest(KINDS[service], service))
    took = [await _kill(site, service) for _ in range(KILLS)]
    print(f"\n{service}: {' '.join(f'{one:.1f}' for one in took)}, median {statistics.median(took):.1f} s")
    within("seconds_from_kill_to_write", max(took))


async def _kill(site: Site, service: str) -> float:
    """Seconds from the kill to the next pod, all pods being there."""
    await eventually(lambda: _pods(site.seen, service) == PODS and site.run.ready())
    before = len(site.seen.events)
    os.kill(site.run.child(f"run {service}"), signal.SIGKILL)
    killed = asyncio.get_running_loop().time()
    delete = ("delete", "pod", "-l", f"app={service}", "--grace-period=0", "--force", "--wait=false")
    await asyncio.to_thread(site.cluster.kubectl, *delete)
    await eventually(lambda: bool(_made(site.seen, service, before)))
    return _made(site.seen, service, before)[0] - killed


def _made(seen: Recorder, service: str, since: int) -> list[float]:
    """When pods of the service's workload were made, from an event on."""
    new = (event for event in list(seen.events[since:]) if event.type == "ADDED")
    return [event.at for event in new if event.object["metadata"]["labels"].get("app") == service]


def _pods(seen: Recorder, service: str) -> int:
    """How many pods it has that run, none of them terminating."""
    own = [one for one in list(seen.objects.values()) if one["metadata"].get("labels", {}).get("app") == service]
    return sum(one["status"].get("phase") == "Running" and "deletionTimestamp" not in one["metadata"] for one in own)


def _manifest(kind: Resource, name: str) -> str:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    if kind != DAEMON_SET:
        spec["replicas"] = PODS
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}
    return msgspec.json.encode(body).decode()
