"""The embedded control plane: its fake kubelets behave like kubelets, and all its processes end with it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from flotilla_cli.local import is_alive
from flotilla_dev.cluster.processes import marked
from tests.support.cluster import Cluster, control_plane, eventually
from tests.testkit.manifests import manifest

GATED = manifest("control-plane-gated")

CLAIM = manifest("control-plane-claim")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    state_dir = tmp_path_factory.mktemp("plane")
    async with control_plane(state_dir, nodes=3) as running:
        yield running
    assert not list(marked(state_dir))


def pod(cluster: Cluster, name: str) -> dict[str, Any]:
    return cluster.read("pod", name)


def conditions(document: dict[str, Any]) -> dict[str, str]:
    return {entry["type"]: entry["status"] for entry in document["status"].get("conditions", [])}


def set_gate(cluster: Cluster, name: str, status: str) -> None:
    patch = {"status": {"conditions": [{"type": "InPlaceUpdateReady", "status": status}]}}
    cluster.kubectl("patch", "pod", name, "--subresource=status", "-p", json.dumps(patch))


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_deployment_becomes_available(cluster: Cluster) -> None:
    cluster.kubectl("create", "deployment", "web", "--image=nginx:alpine", "--replicas=5")
    cluster.kubectl("rollout", "status", "deployment/web", "--timeout=30s")
    pods = cluster.read("pods", "-l", "app=web")["items"]
    assert len({entry["status"]["podIP"] for entry in pods}) == 5
    assert {entry["spec"]["nodeName"] for entry in pods} <= {"node-0", "node-1", "node-2"}


async def test_a_gated_pod_follows_its_gate_and_restarts_for_a_new_image(cluster: Cluster) -> None:
    cluster.apply(GATED)
    await eventually(lambda: "Ready" in conditions(pod(cluster, "gated")))
    before = pod(cluster, "gated")
    assert conditions(before)["Ready"] == "False"
    assert conditions(before)["ContainersReady"] == "True"

    set_gate(cluster, "gated", "True")
    await eventually(lambda: conditions(pod(cluster, "gated"))["Ready"] == "True")
    set_gate(cluster, "gated", "False")
    await eventually(lambda: conditions(pod(cluster, "gated"))["Ready"] == "False")

    cluster.kubectl("set", "image", "pod/gated", "main=nginx:mainline")
    await eventually(lambda: pod(cluster, "gated")["status"]["containerStatuses"][0]["restartCount"] == 1)
    after = pod(cluster, "gated")
    old, new = before["status"]["containerStatuses"][0], after["status"]["containerStatuses"][0]
    assert new["imageID"].startswith("docker.io/library/nginx@sha256:")
    assert new["imageID"] != old["imageID"]
    assert new["containerID"] != old["containerID"]
    assert after["status"]["podIP"] == before["status"]["podIP"]
    assert conditions(after)["InPlaceUpdateReady"] == "False"  # the fake kubelet leaves others' conditions alone


async def test_a_broken_image_stays_unready_until_it_is_replaced(cluster: Cluster) -> None:
    cluster.kubectl("run", "sick", "--image=nginx:alpine")
    cluster.kubectl("wait", "--for=condition=Ready", "pod/sick", "--timeout=30s")
    cluster.kubectl("set", "image", "pod/sick", "sick=nginx:broken")
    await eventually(lambda: conditions(pod(cluster, "sick"))["Ready"] == "False")
    cluster.kubectl("set", "image", "pod/sick", "sick=nginx:mainline")
    await eventually(lambda: conditions(pod(cluster, "sick"))["Ready"] == "True")


async def test_a_killed_kwok_is_replaced_and_takes_up_waiting_pods(cluster: Cluster) -> None:
    kwok = cluster.plane.processes.get("kwok")
    assert kwok is not None
    os.kill(kwok.pid, signal.SIGKILL)
    await eventually(lambda: not is_alive(kwok))
    cluster.kubectl("run", "late", "--image=nginx:alpine")
    await eventually(lambda: "nodeName" in pod(cluster, "late")["spec"])
    await cluster.plane.start()
    cluster.kubectl("wait", "--for=condition=Ready", "pod/late", "--timeout=30s")
    taken_by = {node["status"]["nodeInfo"]["bootID"] for node in cluster.read("nodes")["items"]}
    assert taken_by == {pod(cluster, "late")["metadata"]["annotations"]["fake.flotilla.dev/shown"]}


async def test_a_kwok_that_dies_as_it_starts_is_started_again(cluster: Cluster) -> None:
    first = cluster.plane.processes.get("kwok")
    assert first is not None
    os.kill(first.pid, signal.SIGKILL)
    await eventually(lambda: not is_alive(first))
    starting = asyncio.create_task(cluster.plane.start())
    await eventually(lambda: cluster.plane.processes.get("kwok") != first)
    second = cluster.plane.processes.get("kwok")
    assert second is not None
    os.kill(second.pid, signal.SIGKILL)
    await starting
    cluster.kubectl("run", "later", "--image=nginx:alpine")
    cluster.kubectl("wait", "--for=condition=Ready", "pod/later", "--timeout=30s")


async def test_nothing_survives_a_killed_test_process(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, signal\nfrom pathlib import Path\nfrom tests.support.cluster import control_plane\n"
        "async def main():\n"
        f"    async with control_plane(Path({str(tmp_path)!r})):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", script]
    reply = await asyncio.to_thread(subprocess.run, command, cwd=root, timeout=60, check=False, capture_output=True)
    assert reply.returncode == -signal.SIGKILL, reply.stderr
    await eventually(lambda: not list(marked(tmp_path)))


async def test_a_claim_is_bound_and_grows_and_its_volume_goes_with_it(cluster: Cluster) -> None:
    cluster.apply(CLAIM)
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/data", "--timeout=30s")
    cluster.kubectl("wait", "--for=condition=Ready", "pod/stateful", "--timeout=30s")
    cluster.kubectl("patch", "pvc", "data", "-p", '{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}')
    cluster.kubectl("wait", "--for=jsonpath={.status.capacity.storage}=2Gi", "pvc/data", "--timeout=30s")
    cluster.kubectl("delete", "pod/stateful", "pvc/data")
    await eventually(lambda: not cluster.read("pv")["items"])
