"""The chart on three real nodes, as a user meets it: install, use, scale, upgrade, uninstall."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.cluster import eventually
from tests.support.helm import NAMESPACE, Helm, helm, push_images
from tests.support.nodes import RealCluster
from tests.support.workspace import Json

SHARDS = 4
CLONE_SET = """\
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: sample}
spec:
  replicas: 6
  updateStrategy: {type: InPlaceIfPossible, maxUnavailable: 2}
  selector: {matchLabels: {app: sample}}
  template:
    metadata: {labels: {app: sample}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: nginx, image: "nginx:alpine"}]
"""
PULL = """\
apiVersion: apps.kruise.io/v1alpha1
kind: ImagePullJob
metadata: {name: pull}
spec:
  image: nginx:perl
  parallelism: 3
  completionPolicy: {type: Always}
  pullPolicy: {timeoutSeconds: 60, backoffLimit: 1}
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chart(cluster: RealCluster) -> AsyncIterator[Helm]:
    """helm on a cluster on which the chart is installed."""
    push_images(cluster)
    runner = await helm(cluster.kubeconfig)
    runner.install(services__cloneset__shards=SHARDS)
    yield runner


def pods(cluster: RealCluster) -> dict[str, Json]:
    return {pod["metadata"]["name"]: pod for pod in cluster.read("pods", "-l", "app=sample")["items"]}


def all_updated(cluster: RealCluster, count: int) -> bool:
    status = cluster.read("clone", "sample").get("status", {})
    return status.get("updatedAvailableReplicas") == count == status.get("updatedReplicas")


def change_image(cluster: RealCluster, image: str) -> None:
    operation = {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image}
    cluster.kubectl("patch", "clone", "sample", "--type=json", "-p", json.dumps([operation]))


def image_of(pod: Json) -> str:
    return pod["spec"]["containers"][0]["image"]


def holders(cluster: RealCluster) -> set[str]:
    """Who holds the shards of the cloneset service."""
    names = [f"flotilla-cloneset-{shard}" for shard in range(SHARDS)]
    leases = {lease["metadata"]["name"]: lease["spec"] for lease in cluster.read("leases", "-n", NAMESPACE)["items"]}
    return {leases[name].get("holderIdentity") or "" for name in names if name in leases}


async def test_workloads_run_and_images_are_pulled(chart: Helm, cluster: RealCluster) -> None:
    cluster.kubectl("create", "-f", "-", stdin=CLONE_SET)
    cluster.kubectl("create", "-f", "-", stdin=PULL)
    await eventually(lambda: all_updated(cluster, 6))
    before = pods(cluster)
    change_image(cluster, "nginx:latest")
    await eventually(lambda: all(image_of(pod) == "nginx:latest" for pod in pods(cluster).values()))
    await eventually(lambda: all_updated(cluster, 6))
    after = pods(cluster)
    assert {pod["metadata"]["uid"] for pod in after.values()} == {pod["metadata"]["uid"] for pod in before.values()}
    await eventually(lambda: cluster.read("imagepulljob", "pull").get("status", {}).get("succeeded") == 3)


async def test_a_scaled_service_spreads_its_shards(chart: Helm, cluster: RealCluster) -> None:
    cluster.kubectl("scale", "deploy/flotilla-cloneset", "-n", NAMESPACE, "--replicas", str(SHARDS))
    await eventually(lambda: len(holders(cluster) - {""}) == SHARDS)
    cluster.kubectl("scale", "clone", "sample", "--replicas", "9")
    await eventually(lambda: all_updated(cluster, 9))
    assert len(pods(cluster)) == 9


async def test_an_upgrade_keeps_rollouts_running(chart: Helm, cluster: RealCluster) -> None:
    before = {pod["metadata"]["uid"] for pod in pods(cluster).values()}
    change_image(cluster, "nginx:1.27")
    chart.install("upgrade", services__cloneset__shards=SHARDS, manager__log__level="debug")
    await eventually(lambda: all(image_of(pod) == "nginx:1.27" for pod in pods(cluster).values()))
    await eventually(lambda: all_updated(cluster, 9))
    assert {pod["metadata"]["uid"] for pod in pods(cluster).values()} == before


async def test_the_wiped_bus_is_filled_again(chart: Helm, cluster: RealCluster) -> None:
    cluster.kubectl("delete", "pvc,pod", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=bus")
    change_image(cluster, "nginx:stable")
    await eventually(lambda: all(image_of(pod) == "nginx:stable" for pod in pods(cluster).values()))
    await eventually(lambda: all_updated(cluster, 9))
    cluster.kubectl("rollout", "status", "statefulset/flotilla-bus", "-n", NAMESPACE, "--timeout=60s")


async def test_pods_start_while_all_webhooks_are_away(chart: Helm, cluster: RealCluster) -> None:
    cluster.kubectl(
        "delete", "pod", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=webhook", "--now", "--wait=false"
    )
    cluster.kubectl("run", "bystander", "--image=busybox", "--restart=Never", "--", "true")
    cluster.kubectl("wait", "pod/bystander", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=30s")
    cluster.kubectl("rollout", "status", "deploy/flotilla-webhook", "-n", NAMESPACE, "--timeout=60s")


async def test_uninstalling_never_deletes_workloads(chart: Helm, cluster: RealCluster) -> None:
    refused = chart.run("uninstall", "flotilla", "--timeout", "60s", check=False)
    assert "failed" in refused
    assert len(pods(cluster)) == 9
    cluster.kubectl("delete", "clone", "sample")
    chart.run("uninstall", "flotilla", "--wait", "--timeout", "120s")
    kinds = {definition["metadata"]["name"] for definition in cluster.read("crds")["items"]}
    assert "clonesets.apps.kruise.io" in kinds
    assert cluster.read("imagepulljobs.v1alpha1.apps.kruise.io", "pull")["status"]["succeeded"] == 3
    with pytest.raises(AssertionError):
        cluster.kubectl("get", "deploy", "flotilla-cloneset", "-n", NAMESPACE)
