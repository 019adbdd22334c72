"""A namespace with a SidecarSet of its own, for tests with kubectl.

SidecarSets have no namespace, so this one has the name of the namespace, and is limited to it.
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import POD
from tests.support.cluster import Cluster
from tests.support.recorder import Recorder
from tests.support.rest import JSON_PATCH
from tests.support.workspace import PATIENCE, Workspace, cloneset, condition, is_ready, new_namespace, terminating
from tests.testkit.documents import Json

OLD, NEW, NEWER = "proxy:1", "proxy:2", "proxy:3"


class Meshed(Workspace):
    """Pods of CloneSet `sample` (label `app: sample`), and the SidecarSet."""

    def sidecar_set(self, *containers: Json, name: str = "", spec: Json | None = None, **strategy: Any) -> None:
        """Make a SidecarSet, or bring it to this. `strategy`: how pods are updated."""
        pinned = {"matchLabels": {"kubernetes.io/metadata.name": self.name}}
        document: Json = {
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "SidecarSet",
            "metadata": {"name": name or self.name},
            "spec": {
                "selector": {"matchLabels": {"app": "sample"}},
                "namespaceSelector": pinned,
                "containers": list(containers) or [sidecar()],
                "updateStrategy": strategy,
                **(spec or {}),
            },
        }
        self.kubectl("apply", "-f", "-", stdin=json.dumps(document))

    def change(self, **spec: Any) -> None:
        """Change members of the SidecarSet's spec."""
        self.send_patch("sidecarset", self.name, {"spec": spec})

    def strategy(self, **members: Any) -> None:
        """Change how pods are updated."""
        self.change(updateStrategy=members)

    def set_sidecar(self, image: str) -> None:
        """Give the first sidecar another image."""
        change = [{"op": "replace", "path": "/spec/containers/0/image", "value": image}]
        self.send_patch("sidecarset", self.name, change, kind=JSON_PATCH)

    def started(self, replicas: int, **template: Any) -> dict[str, Json]:
        """Create pods, and wait until they are ready; return them by name."""
        self.apply(cloneset(replicas, template=template or None))
        self.settled(replicas=replicas, readyReplicas=replicas)
        return dict(self.pods)

    def counts(self, name: str = "") -> tuple[int, int, int, int]:
        """Return matched, updated, ready, updated and ready pods; -1 while the status is not about the newest spec."""
        found = self.read("sidecarset", name or self.name)
        status = found.get("status", {})
        if status.get("observedGeneration") != found["metadata"]["generation"]:
            return -1, -1, -1, -1
        fields = ("matchedPods", "updatedPods", "readyPods", "updatedReadyPods")
        matched, updated, ready, both = (status.get(field, 0) for field in fields)
        return matched, updated, ready, both

    def comes_to(self, *counts: int, name: str = "", seconds: float = PATIENCE) -> None:
        """Wait until the status has these counts, and until the watch has shown the counted pods."""
        self.until(lambda: self.counts(name) == counts, seconds)
        self.catch_up(seconds)

    def sidecars(self, name: str = "proxy") -> list[str]:
        """Return the images of a sidecar in all pods, sorted."""
        return sorted(image_of(pod, name) for pod in self.pods.values() if not terminating(pod))

    def said(self) -> set[str]:
        """Return the pods' conditions SidecarSetUpgradable: status and message."""
        conditions = [condition(pod, "SidecarSetUpgradable") for pod in self.pods.values()]
        return {f"{one.get('status')} {one.get('message')}" for one in conditions if one}

    def told(self, kind: str, reason: str) -> list[str]:
        """Return the messages of events with this reason about objects of a kind (of SidecarSets: in `default`)."""
        where = "default" if kind == "SidecarSet" else self.name
        selector = f"--field-selector=involvedObject.kind={kind},reason={reason}"
        found = self.cluster.read("events", "-n", where, selector)["items"]
        mine = [one for one in found if kind != "SidecarSet" or one["involvedObject"]["name"] == self.name]
        return [one["message"] for one in mine]

    def stored(self) -> dict[str, int]:
        """Return the SidecarSet's revisions and their numbers."""
        label = f"kruise.io/sidecarset-name={self.name}"
        found = self.cluster.read("controllerrevisions", "-n", "kruise-system", "-l", label)["items"]
        return {one["metadata"]["name"]: one["revision"] for one in found}

    def latest(self) -> str:
        """Return the revision of the newest spec."""
        return self.read("sidecarset", self.name)["status"]["latestRevision"]


@contextmanager
def meshed(cluster: Cluster, title: str) -> Generator[Meshed]:
    """Create a namespace for the test of this title. Its SidecarSets are deleted with it."""
    name = new_namespace(cluster, title)
    with Recorder(cluster.rest, POD, CLONE_SET, namespace=name) as recorder:
        assert recorder.until(recorder.begun, PATIENCE), "no watch"
        try:
            yield Meshed(cluster, recorder, name)
        finally:
            cluster.kubectl("delete", "sidecarset", "--ignore-not-found", name, f"{name}-2")


def sidecar(image: str = OLD, name: str = "proxy", **members: Any) -> Json:
    """Return a sidecar that comes after the pod's own container."""
    return {"name": name, "image": image, "podInjectPolicy": "AfterAppContainer", **members}


def hot(image: str = OLD) -> Json:
    """Return a sidecar with hot upgrades."""
    return sidecar(image, upgradeStrategy={"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "idle:1"})


def image_of(pod: Json, container: str) -> str:
    """Return the image of a container; empty if the pod has none of that name."""
    found: list[Json] = [one for one in pod["spec"]["containers"] if one["name"] == container]
    return found[0]["image"] if found else ""


def at_work(pods: dict[str, Json]) -> int:
    """Return how many pods are not ready, or have not been restarted yet."""
    # a fake kubelet restarts within a moment, so readiness alone may miss it
    return sum(not is_ready(pod) or _waits(pod) for pod in pods.values())


def _waits(pod: Json) -> bool:
    images = {one["name"]: one["image"] for one in pod["spec"]["containers"]}
    return any(images[one["name"]] != one["image"] for one in pod["status"].get("containerStatuses", []))
