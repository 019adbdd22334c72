"""Sidecars on virtual nodes end by another image when the pod's main containers have ended.

See container-extras.md §A4.
"""

import json
from pathlib import Path

from tests.support.cluster import Cluster, control_plane, eventually
from tests.support.fleet import fleet
from tests.testkit.manifests import manifest

FLAGS = ["--feature-gates=SidecarTerminator=true"]
POD = manifest("sidecar-terminator-pod")


def image_of(cluster: Cluster, container: str) -> str:
    containers = cluster.read("pod", "work")["spec"]["containers"]
    return next(one["image"] for one in containers if one["name"] == container)


def finish(cluster: Cluster) -> None:
    """End the main container, as a virtual kubelet reports it."""
    statuses = cluster.read("pod", "work")["status"]["containerStatuses"]
    for status in statuses:
        if status["name"] == "main":
            status["state"] = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    patch = json.dumps({"status": {"containerStatuses": statuses}})
    cluster.kubectl("patch", "pod", "work", "--subresource=status", "--type=merge", "-p", patch)


async def test_a_sidecar_on_a_virtual_node_gets_the_image_that_ends(tmp_path: Path):
    services = ("watcher", "webhook", "sidecar")
    async with control_plane(tmp_path, nodes=1) as cluster, fleet(cluster, services, FLAGS):
        (node,) = [one["metadata"]["name"] for one in cluster.read("nodes")["items"]]
        cluster.create(POD.replace("NODE", node))
        await eventually(lambda: cluster.read("pod", "work")["status"].get("phase") == "Running")
        cluster.kubectl("label", "--overwrite", "node", node, "type=virtual-kubelet")  # unmanaged from now on
        assert image_of(cluster, "proxy") == "proxy:1"
        finish(cluster)
        await eventually(lambda: image_of(cluster, "proxy") == "exit:1")
        assert image_of(cluster, "main") == "busybox:1.36"
        told = "sidecar [proxy] using in-place update"
        await eventually(lambda: told in cluster.kubectl("get", "events", "-o", "jsonpath={.items[*].message}"))
        assert "sidecar-termination" not in cluster.kubectl("get", "containerrecreaterequests", "-o", "name")
