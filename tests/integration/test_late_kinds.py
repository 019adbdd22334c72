"""Kinds that are optional: a service that starts without their CRD works, and uses them from the moment they come."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from flotilla_cli.local import is_alive
from tests.support.cluster import Cluster, control_plane, eventually
from tests.support.fleet import SERVICES, fleet, install
from tests.support.workspace import cloneset

CRD = "imagepulljobs.apps.kruise.io"
SYNCED = '{"resource": "apps_kruise_io.imagepulljobs"'
"""Log line of a service that has received all jobs."""
GATE = "--feature-gates=PreDownloadImageForInPlaceUpdate=true"


def rolled_out(cluster: Cluster, image: str, replicas: int, updated: int) -> bool:
    """Report whether all pods are ready, `updated` of them on the image."""
    status: dict[str, Any] = cluster.read("clone", "sample").get("status", {})
    items = cluster.read("pods", "-l", "app=sample")["items"]
    images = [item["spec"]["containers"][0]["image"] for item in items]
    return status.get("readyReplicas") == replicas and images.count(image) == updated


def set_image(cluster: Cluster, image: str) -> None:
    change = {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image}
    cluster.kubectl("patch", "clone", "sample", "--type=json", "-p", json.dumps([change]))


@pytest.mark.asyncio
@pytest.mark.timeout(300)
async def test_images_are_pulled_ahead_once_the_crd_is_there(tmp_path: Path) -> None:
    async with control_plane(tmp_path, nodes=2) as cluster, fleet(cluster, services=()) as flotilla:
        cluster.kubectl("delete", "crd", CRD)
        members = [await flotilla.start(service, flags=[GATE]) for service in SERVICES]
        strategy = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1, "partition": 4}
        cluster.apply(cloneset(5, strategy=strategy))
        await eventually(lambda: rolled_out(cluster, "nginx:alpine", 5, 5))
        set_image(cluster, "nginx:without")
        await eventually(lambda: rolled_out(cluster, "nginx:without", 5, 1))

        await asyncio.to_thread(install, cluster, flotilla.webhook_url)
        await eventually(lambda: SYNCED in flotilla.members["cloneset"].log())
        await eventually(lambda: pulled(cluster) == ["nginx:without"])  # for the pods that are held back
        set_image(cluster, "nginx:ahead")
        await eventually(lambda: "nginx:ahead" in pulled(cluster))
        await eventually(lambda: rolled_out(cluster, "nginx:ahead", 5, 1))
        assert all(is_alive(member.process) for member in members)


def pulled(cluster: Cluster) -> list[str]:
    """Return the images of the existing jobs."""
    return [item["spec"]["image"] for item in cluster.read("imagepulljobs")["items"]]
