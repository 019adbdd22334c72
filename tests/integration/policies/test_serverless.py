"""The gate EnablePodProbeMarkerOnServerless (podprobemarker.md §7, rows 29 and 30).

Pods carry their probes to virtual nodes, and are marked by the conditions that these write.
"""

import json

from tests.integration.podprobemarker.conftest import marker
from tests.support.podrules import pod_rules
from tests.support.workspace import Workspace
from tests.testkit.documents import Json

VIRTUAL = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "virtual", "labels": {"type": "virtual-kubelet"}}}


def pod(name: str, app: str) -> Json:
    spec = {"nodeName": "virtual", "containers": [{"name": "game", "image": "game:1"}]}
    meta = {"name": name, "labels": {"app": app}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def marks(space: Workspace) -> tuple[Json, str | None]:
    meta = space.pod("p")["metadata"]
    return {key: value for key, value in meta["labels"].items() if key == "idle"}, meta["annotations"].get("cost")


def probed(space: Workspace) -> bool:
    """Report whether pods of the namespace go through the webhook because of PodProbeMarkers."""
    return any((rule.why, rule.namespace) == ("PodProbeMarkers", space.name) for rule in pod_rules(space.cluster))


def test_a_pod_of_a_virtual_node(space: Workspace) -> None:
    space.create(VIRTUAL)
    try:
        assert not probed(space)
        space.create(marker())
        space.create(pod("p", "game"), pod("other", "other"))
        annotations = space.read("pod", "p")["metadata"]["annotations"]
        assert annotations["kruise.io/podprobemarker-list"] == "m"
        assert [one["podConditionType"] for one in json.loads(annotations["kruise.io/podprobe"])] == ["game.io/idle"]
        assert "annotations" not in space.read("pod", "other")["metadata"]
        space.send_patch("pod", "p", {"status": {"phase": "Running"}}, subresource="status")
        space.set_condition("p", "Initialized", "True")
        for status, shown in (("True", ({"idle": "yes"}, "-5")), ("False", ({"idle": "yes"}, "5"))):
            space.set_condition("p", "game.io/idle", status)
            space.until(lambda shown=shown: marks(space) == shown)
        space.until(lambda: space.object("PodProbeMarker", "m").get("status", {}).get("matchedPods") == 1)
        assert "virtual" not in space.kubectl("get", "nodepodprobes", "-o", "name")
    finally:
        space.kubectl("delete", "node", "virtual", "--wait=false")
