"""The gate EnablePodProbeMarkerOnServerless (podprobemarker.md §7, rows 29 and 30).

Pods carry their probes to virtual nodes, and are marked by the conditions that these write.
"""

import json
from pathlib import Path

from tests.integration.podprobemarker.conftest import marker
from tests.support.cluster import Cluster, control_plane, eventually
from tests.support.fleet import fleet
from tests.support.podrules import pod_rules
from tests.testkit.documents import Json

GATE = "--feature-gates=EnablePodProbeMarkerOnServerless=true"
VIRTUAL = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "virtual", "labels": {"type": "virtual-kubelet"}}}


def pod(name: str, app: str) -> str:
    spec = {"nodeName": "virtual", "containers": [{"name": "game", "image": "game:1"}]}
    meta = {"name": name, "labels": {"app": app}}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


def says(cluster: Cluster, status: str) -> None:
    """Write the conditions as the virtual node does."""
    conditions = [{"type": "Initialized", "status": "True"}, {"type": "game.io/idle", "status": status}]
    body = json.dumps({"status": {"phase": "Running", "conditions": conditions}})
    cluster.kubectl("patch", "pod", "p", "--subresource=status", "--type=strategic", "-p", body)


def marks(cluster: Cluster) -> tuple[Json, str | None]:
    meta = cluster.read("pod", "p")["metadata"]
    return {key: value for key, value in meta["labels"].items() if key == "idle"}, meta["annotations"].get("cost")


async def test_a_pod_of_a_virtual_node(tmp_path: Path):
    async with control_plane(tmp_path) as cluster, fleet(cluster, ("watcher", "policy", "webhook"), [GATE]):
        assert not [rule for rule in pod_rules(cluster) if rule.why == "PodProbeMarkers"]
        cluster.create(VIRTUAL)
        cluster.create(marker())
        cluster.create(pod("p", "game"))
        cluster.create(pod("other", "other"))
        annotations = cluster.read("pod", "p")["metadata"]["annotations"]
        assert annotations["kruise.io/podprobemarker-list"] == "m"
        assert [one["podConditionType"] for one in json.loads(annotations["kruise.io/podprobe"])] == ["game.io/idle"]
        assert "annotations" not in cluster.read("pod", "other")["metadata"]
        says(cluster, "True")
        await eventually(lambda: marks(cluster) == ({"idle": "yes"}, "-5"))
        says(cluster, "False")
        await eventually(lambda: marks(cluster) == ({"idle": "yes"}, "5"))
        await eventually(lambda: cluster.read("podprobemarker", "m").get("status", {}).get("matchedPods") == 1)
        assert "virtual" not in cluster.kubectl("get", "nodepodprobes", "-o", "name")
