"""SidecarSets on real containers: injection, restarts by updates, and a lossless hot upgrade (sidecarset.md §6, §7)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import pytest_asyncio

from flotilla_common.api.resources import POD
from flotilla_dev.cluster.realnodes import registry
from tests.cluster.conftest import Running, forget
from tests.support.recorder import Recorder
from tests.support.rest import JSON_PATCH
from tests.support.workspace import Workspace, is_ready, new_namespace, terminating
from tests.testkit.documents import Json
from tests.testkit.manifests import manifest

PATIENCE = 60  # seconds: containers have a grace period
V1, V2, V3, EMPTY = (f"sample/sidecar:{tag}" for tag in ("v1", "v2", "v3", "empty"))
DEPLOYMENT = manifest("sidecarset-deployment")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stocked(running: Running) -> Running:
    """Have images whose pages name them."""
    for image in (V1, V2, V3, EMPTY):
        await running.cluster.registry.push(image, registry.SLEEPER, {"/version": image.encode()})
    return running


class Meshed(Workspace):
    """A namespace, and SidecarSets for it alone."""

    def sidecar_set(self, *containers: Json, **spec: Any) -> None:
        """Make the namespace's own, which is named as it is."""
        pinned = {"matchLabels": {"kubernetes.io/metadata.name": self.name}}
        given = {"selector": {"matchLabels": {"app": "web"}}, "namespaceSelector": pinned, "containers": containers}
        document = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": self.name}}
        self.create(document | {"spec": given | spec})

    def change(self, *operations: Json) -> None:
        """Change the SidecarSet."""
        self.send_patch("sidecarset", self.name, operations, kind=JSON_PATCH)

    def set_sidecar(self, image: str) -> None:
        self.change({"op": "replace", "path": "/spec/containers/0/image", "value": image})

    def started(self, replicas: int = 1) -> dict[str, Json]:
        """Deploy pods, and wait until they are ready."""
        self.create(DEPLOYMENT.replace("REPLICAS", str(replicas)))
        self.until(lambda: len(self.serving()) == replicas, PATIENCE)
        return self.serving()

    def serving(self) -> dict[str, Json]:
        return {name: pod for name, pod in self.pods.items() if is_ready(pod) and not terminating(pod)}

    def counts(self) -> tuple[int, ...]:
        """Return matched, updated, ready, and updated and ready pods."""
        found = self.read("sidecarset", self.name)
        status = found.get("status", {})
        if status.get("observedGeneration") != found["metadata"]["generation"]:
            return ()
        keys = ("matchedPods", "updatedPods", "readyPods", "updatedReadyPods")
        return tuple(status.get(key, 0) for key in keys)

    def counted(self, *expected: int) -> None:
        """Wait for these counts, and until the watch has shown the counted pods."""
        self.until(lambda: self.counts() == expected, PATIENCE)
        self.catch_up()

    def run(self, pod: str, container: str, command: str) -> str:
        """Run a shell command in a container and return its output."""
        return self.kubectl("exec", pod, "-c", container, "--", "sh", "-c", command).strip()


@pytest.fixture
def space(stocked: Running, request: pytest.FixtureRequest) -> Iterator[Meshed]:
    cluster = stocked.cluster
    name = new_namespace(cluster, request.node.nodeid)
    with Recorder(cluster.rest, POD, namespace=name) as recorder:
        yield Meshed(cluster, recorder, name)
    cluster.kubectl("delete", "sidecarset", name, "--ignore-not-found")
    forget(cluster, name)


def statuses(pod: Json) -> dict[str, Json]:
    return {status["name"]: status for status in pod["status"].get("containerStatuses", [])}


def images_of(pod: Json) -> dict[str, str]:
    return {one["name"]: one["image"] for one in pod["spec"]["containers"]}


def working(pod: Json) -> str:
    return json.loads(pod["metadata"]["annotations"]["kruise.io/sidecarset-working-hotupgrade-container"])["mesh"]


def test_a_sidecar_shares_and_is_updated_alone(space: Meshed):
    sidecar = {
        "name": "agent",
        "image": V1,
        "shareVolumePolicy": {"type": "enabled"},
        "transferEnv": [{"sourceContainerName": "main", "envName": "COLOR"}],
    }
    space.sidecar_set(sidecar)
    before = space.started(2)
    space.counted(2, 2, 2, 2)
    name = next(iter(before))
    space.run(name, "main", "echo here >/data/file")
    assert space.run(name, "agent", 'cat /version /data/file; echo "$COLOR"').split() == [f"{V1}here", "blue"]
    space.set_sidecar(V2)
    space.counted(2, 2, 2, 2)
    after = space.serving()
    assert {pod["metadata"]["uid"] for pod in after.values()} == {pod["metadata"]["uid"] for pod in before.values()}
    for pod in after.values():
        assert images_of(pod) == {"agent": V2, "main": "nginx:alpine"}
        assert (statuses(pod)["agent"]["restartCount"], statuses(pod)["main"]["restartCount"]) == (1, 0)
    assert space.run(name, "agent", "cat /version /data/file") == f"{V2}here"


def test_a_broken_image_stops_and_a_good_one_goes_on(space: Meshed):
    """Rows 13 and 14."""
    space.sidecar_set({"name": "agent", "image": V1})
    space.started(2)
    space.counted(2, 2, 2, 2)
    space.set_sidecar("sample/sidecar:missing")
    space.counted(2, 1, 1, 0)
    space.set_sidecar(V3)
    space.counted(2, 2, 2, 2)


def test_hot_upgrade(space: Meshed):
    """The table of §11.3; the new container sees both versions when it starts."""
    said = 'echo "$(cat /version) $SIDECARSET_VERSION $SIDECARSET_VERSION_ALT" >>/log/starts'
    mesh = {
        "name": "mesh",
        "image": V1,
        "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": EMPTY},
        "lifecycle": {"postStart": {"exec": {"command": ["/bin/sh", "-c", said]}}},
        "volumeMounts": [{"name": "log", "mountPath": "/log"}],
    }
    space.sidecar_set(mesh, volumes=[{"name": "log", "emptyDir": {}}])
    (name,) = space.started()
    space.counted(1, 1, 1, 1)
    assert images_of(space.pod(name)) == {"mesh-1": V1, "mesh-2": EMPTY, "main": "nginx:alpine"}
    space.set_sidecar(V2)
    space.counted(1, 1, 1, 1)
    assert images_of(space.pod(name)) == {"mesh-1": EMPTY, "mesh-2": V2, "main": "nginx:alpine"}
    assert working(space.pod(name)) == "mesh-2"
    assert space.run(name, working(space.pod(name)), "cat /version") == V2, "as `kubectl kruise exec -S mesh` goes"
    space.set_sidecar(V3)
    space.counted(1, 1, 1, 1)
    assert images_of(space.pod(name)) == {"mesh-1": V3, "mesh-2": EMPTY, "main": "nginx:alpine"}
    for moment in space.moments():
        if name in moment and moment[name]["metadata"]["annotations"].get("kruise.io/sidecarset-injected-list"):
            found = images_of(moment[name])
            assert {found["mesh-1"], found["mesh-2"]} != {EMPTY}, "one of the two always works"
            assert statuses(moment[name]).get("main", {}).get("restartCount", 0) == 0
    starts = [line.split() for line in space.run(name, "mesh-1", "cat /log/starts").splitlines()]
    upgraded = [line for line in starts if line[0] == V2]
    assert upgraded
    assert all(int(line[1]) > int(line[2]) > 0 for line in upgraded[:1]), starts


def test_native_sidecars_and_resources_that_follow_from_the_pods(space: Meshed):
    policy = {
        "targetContainersMode": "sum",
        "resourcesExpr": {"limits": {"cpu": "max(cpu*50%, 50m)", "memory": "memory/2"}, "requests": {"cpu": "10m"}},
    }
    native = {"name": "native", "image": V1, "restartPolicy": "Always"}
    space.sidecar_set(
        {"name": "agent", "image": V1, "resourcesPolicy": policy},
        initContainers=[native],
        updateStrategy={"type": "NotUpdate"},
    )
    (pod,) = space.started().values()
    (agent,) = (one for one in pod["spec"]["containers"] if one["name"] == "agent")
    assert agent["resources"]["limits"] == {"cpu": "100m", "memory": "32Mi"}
    assert agent["resources"]["requests"]["cpu"] == "10m"
    assert [one["name"] for one in pod["spec"]["initContainers"]] == ["native"]
    assert pod["status"]["initContainerStatuses"][0]["ready"]
    space.counted(1, 1, 1, 1)
    space.set_sidecar(V2)
    space.counted(1, 0, 1, 0)
    assert images_of(space.pod(pod["metadata"]["name"]))["agent"] == V1
