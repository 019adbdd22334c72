"""A takeover from OpenKruise on real nodes with helm, and back: no container restarts, no work is repeated."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest_asyncio

from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.access import admin
from flotilla_dev.cluster.realnodes.registry import SERVER
from tests.support import openkruise, openkruise_pods
from tests.support.cluster import eventually
from tests.support.helm import CHART, NAMESPACE, Helm, push_images, settings
from tests.support.nodes import RealCluster
from tests.support.openkruise_pods import RESTARTED, SPACE, WAITING
from tests.support.workspace import image, is_ready
from tests.testkit.documents import Json

GOLDEN = Path(__file__).parents[1] / "integration" / "adopt" / "golden"
VALUES = {
    "profile": "compact",
    "featureGates": "CloneSetShortHash=true",
    "settings__lease-duration": "5s",
    "settings__lease-retry-period": "1s",
}
"""Leases of pods that lost their rights shall run out soon."""
HELD = {"clone": {"clone-kscj8", "clone-tmj6v"}, "asts": {"asts-0", "asts-2"}}
"""Pods of each set that its partition keeps; sets are named like their kinds' short names."""


class Container(NamedTuple):
    """The identity of a container, which changes with a restart."""

    pod: str
    id: str
    restarts: int


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def helm(cluster: RealCluster) -> AsyncIterator[Helm]:
    """Start OpenKruise in the middle of a rollout, a pull and two restarts; return helm."""
    push_images(cluster)
    await openkruise_pods.push_images(cluster, SERVER)
    runner = await openkruise.install(cluster, GOLDEN)
    cluster.kubectl("create", "namespace", SPACE)
    async with admin(cluster.kubeconfig, SystemClock()) as api:
        loader = openkruise.Loader(api)
        await loader.load(openkruise_pods.at_real_nodes(openkruise.read(GOLDEN)))
        await eventually(lambda: len(containers(cluster)) == 8 and all(map(is_ready, pods(cluster).values())))
        job = await loader.create(openkruise_pods.pull_job())
        found = pods(cluster)
        requests = [openkruise_pods.request(found[name], killed=name == RESTARTED) for name in (RESTARTED, WAITING)]
        for document in (*openkruise_pods.node_images(cluster.names, job), *requests):
            await loader.create(document)
    cluster.kubectl("exec", "-n", SPACE, RESTARTED, "--", "kill", "1", check=False)  # which may end with its container
    await eventually(lambda: has_restarted(cluster, RESTARTED))
    openkruise.admit(cluster, runner)
    yield runner


def pods(cluster: RealCluster) -> dict[str, Json]:
    return {pod["metadata"]["name"]: pod for pod in cluster.read("pods", "-n", SPACE)["items"]}


def containers(cluster: RealCluster) -> dict[str, Container]:
    """Return the running containers by their pods."""
    found: dict[str, Container] = {}
    for name, pod in pods(cluster).items():
        for one in pod["status"].get("containerStatuses", ()):
            if "running" in one["state"]:
                found[name] = Container(pod["metadata"]["uid"], one["containerID"], one["restartCount"])
    return found


def has_restarted(cluster: RealCluster, pod: str) -> bool:
    found = containers(cluster).get(pod)
    return found is not None and found.restarts == 1 and is_ready(pods(cluster)[pod])


def adopt(cluster: RealCluster, *flags: str) -> str:
    command = [sys.executable, "-m", "flotilla_cli", "adopt", *flags, "--kubeconfig", str(cluster.kubeconfig)]
    reply = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert reply.returncode == 0, reply.stderr + reply.stdout
    return reply.stdout


def status(cluster: RealCluster, kind: str, name: str) -> Mapping[str, Any]:
    return cluster.read(kind, name, "-n", SPACE).get("status", {})


def completed(cluster: RealCluster) -> bool:
    """Report whether both requests are completed, and the image is on all nodes."""
    phases = {status(cluster, "crr", f"restart-{name}").get("phase") for name in (RESTARTED, WAITING)}
    return phases == {"Completed"} and status(cluster, "imagepulljob", "pull").get("succeeded") == 3


def updated(cluster: RealCluster, name: str) -> bool:
    found = status(cluster, name, name)
    return found["updatedReadyReplicas"] == 4 == found["updatedAvailableReplicas"]


async def test_taken_over_and_given_back(helm: Helm, cluster: RealCluster) -> None:
    before = containers(cluster)
    release = ("flotilla", str(CHART), "-n", NAMESPACE, "--take-ownership", *settings(VALUES))
    assert "run flotilla adopt first" in helm.run("install", *release, check=False)
    said = adopt(cluster, "--dry-run")
    for kind, name in openkruise_pods.SETS:
        assert f"{kind} {SPACE}/{name}: 2 of 4 pods updated, partition 2" in said
    assert f"ImagePullJob {SPACE}/pull: {openkruise_pods.PULLED} on 0 of 3 nodes, 2 pulling" in said
    adopt(cluster)
    helm.run("install", *release, "--wait", "--timeout", "120s")
    await eventually(lambda: completed(cluster))
    after = containers(cluster)
    assert after.pop(WAITING).restarts == before.pop(WAITING).restarts + 1
    assert after == before
    for name, left in HELD.items():
        await rolled_out(cluster, name, left)
    assert {image(pod) for pod in pods(cluster).values()} == {"nginx:1.22.0"}
    await given_back(helm, cluster)


async def rolled_out(cluster: RealCluster, name: str, left: set[str]) -> None:
    """Continue the rollout in place with the pods that the partition kept; other pods are untouched."""
    before = containers(cluster)
    change = json.dumps({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    cluster.kubectl("patch", name, name, "-n", SPACE, "--type=merge", "-p", change)
    await eventually(lambda: updated(cluster, name))
    after = containers(cluster)
    assert {name: one.pod for name, one in after.items()} == {name: one.pod for name, one in before.items()}
    assert {name for name, one in after.items() if one != before[name]} == left
    assert {after[name].restarts for name in left} == {1}


async def given_back(helm: Helm, cluster: RealCluster) -> None:
    """Check that OpenKruise works again, and containers have not restarted."""
    before = containers(cluster)
    assert "kruise-1.9.0" not in helm.run("list", "-A")
    helm.run("uninstall", "flotilla", "-n", NAMESPACE, "--no-hooks", "--wait", "--timeout", "120s")
    adopt(cluster, "--undo")
    assert "kruise-1.9.0" in helm.run("list", "-A")
    for workload in ("deploy/kruise-controller-manager", "ds/kruise-daemon"):
        cluster.kubectl("rollout", "status", "-n", NAMESPACE, workload, "--timeout=60s")
    assert len(cluster.read("crd")["items"]) == len(openkruise.KINDS)
    assert containers(cluster) == before
