"""In-place updates of CloneSets on real containers: kubelet and containerd carry out our writes (common.md §9)."""

import pytest

from tests.cluster.conftest import Running
from tests.support.workspace import (
    Workspace,
    cloneset,
    condition,
    identity,
    image,
    is_ready,
    revision_of,
    state,
    terminating,
)
from tests.testkit.documents import Json

IN_PLACE: Json = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%"}
ONE_PER_NODE: Json = {
    "spec": {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "sample"}},
            }
        ]
    }
}
PATIENCE = 60  # seconds: containers have a grace period of 30


def started(space: Workspace, replicas: int, strategy: Json = IN_PLACE, **arguments: object) -> dict[str, Json]:
    """Apply a CloneSet and wait until its containers run; returns the pods."""
    space.apply(cloneset(replicas, strategy=strategy, **arguments))
    return settled(space, replicas=replicas, readyReplicas=replicas)


def updated(space: Workspace, replicas: int) -> dict[str, Json]:
    """Wait until all pods are updated and ready; returns them."""
    return settled(space, replicas=replicas, updatedReadyReplicas=replicas, readyReplicas=replicas)


def settled(space: Workspace, **fields: int) -> dict[str, Json]:
    """Wait for this status, and until the watch has shown its pods; return the pods by name."""
    revision = space.settled(seconds=PATIENCE, **fields)["updateRevision"]
    space.until(lambda: all(is_ready(pod) and revision_of(pod) == revision for pod in space.pods.values()), PATIENCE)
    return dict(space.pods)


def identities(pods: dict[str, Json]) -> set[tuple[str, str, str, str]]:
    return {identity(pod) for pod in pods.values()}


def containers(pod: Json) -> dict[str, Json]:
    """Return the containers' statuses by name."""
    return {status["name"]: status for status in pod["status"]["containerStatuses"]}


def page(space: Workspace, pod: Json) -> str:
    """Return the page of the pod's web server, read from its node."""
    name = pod["metadata"]["name"]
    return space.kubectl("exec", name, "-c", "nginx", "--", "wget", "-qO-", "127.0.0.1").strip()


def two_containers() -> Json:
    pair = [
        {"name": "nginx", "image": "nginx:alpine"},
        {"name": "agent", "image": "httpd:2.4", "command": ["sleep", "infinity"]},
    ]
    return {"spec": {"containers": pair, "terminationGracePeriodSeconds": 2}}


def test_a_new_image_restarts_the_container_in_its_pod(space: Workspace):
    before = started(space, 3, template=ONE_PER_NODE)
    assert {pod["spec"]["nodeName"] for pod in before.values()} == {"real-0", "real-1", "real-2"}
    start = space.now()
    space.set_image("nginx:mainline")
    after = updated(space, 3)
    assert identities(after) == identities(before)
    for name, pod in after.items():
        old, new = containers(before[name])["nginx"], containers(pod)["nginx"]
        assert (old["restartCount"], new["restartCount"]) == (0, 1)
        assert new["containerID"] != old["containerID"]
        assert new["imageID"] != old["imageID"]
        assert new["lastState"]["terminated"]["containerID"] == old["containerID"]
        assert new["lastState"]["terminated"]["exitCode"] == 0
        assert page(space, pod) == "nginx:mainline"
    for name in after:
        assert_readiness_drops_and_returns(space, name, start)


def assert_readiness_drops_and_returns(space: Workspace, name: str, start: int) -> None:
    seen = [event.object for event in space.history(start) if event.object["metadata"]["name"] == name]
    ready = [is_ready(pod) for pod in seen]
    assert ready[0] is not ready[-1] or False in ready, "the pod stayed ready"
    unready = seen[ready.index(False)]
    assert condition(unready, "InPlaceUpdateReady")["reason"] == "StartInPlaceUpdate"
    assert image(unready) == "nginx:alpine", "its container was changed while it was ready"
    assert is_ready(seen[-1])
    assert state(seen[-1]) == "Normal"


def test_metadata_alone_restarts_nothing_and_an_image_its_container(space: Workspace):
    before = started(space, 2, template=two_containers())
    space.patch({"spec": {"template": {"metadata": {"labels": {"tier": "web"}, "annotations": {"note": "new"}}}}})
    after = updated(space, 2)
    assert identities(after) == identities(before)
    for name, pod in after.items():
        meta = pod["metadata"]
        assert (meta["labels"]["tier"], meta["annotations"]["note"]) == ("web", "new")
        assert {one["containerID"] for one in containers(pod).values()} == {
            one["containerID"] for one in containers(before[name]).values()
        }
    space.set_image("nginx:mainline")
    after = updated(space, 2)
    assert identities(after) == identities(before)
    for name, pod in after.items():
        old, new = containers(before[name]), containers(pod)
        assert new["agent"]["containerID"] == old["agent"]["containerID"]
        assert new["agent"]["restartCount"] == 0
        assert new["nginx"]["restartCount"] == 1


def test_an_image_that_is_not_there_stops_the_rollout_until_the_next_one(space: Workspace):
    strategy = IN_PLACE | {"maxUnavailable": 1}
    before = started(space, 2, strategy)
    space.set_image("nginx:never-pushed")
    space.until(lambda: any(waits(pod) for pod in space.pods.values()), PATIENCE)
    assert sum(map(is_ready, space.pods.values())) == 1
    space.set_image("nginx:mainline")
    after = updated(space, 2)
    assert identities(after) == identities(before)
    assert {page(space, pod) for pod in after.values()} == {"nginx:mainline"}


def waits(pod: Json) -> bool:
    """Report whether the kubelet fails to pull the image."""
    reasons = {status["state"].get("waiting", {}).get("reason") for status in containers(pod).values()}
    return bool(reasons & {"ErrImagePull", "ImagePullBackOff"})


def test_data_stays_in_its_volume(space: Workspace, running: Running):
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    mounts = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    template = {"spec": {"containers": [{"name": "nginx", "image": "nginx:alpine", **mounts}]}}
    before = started(space, 2, template=template, volumeClaimTemplates=[claim])
    for name in before:
        space.kubectl("exec", name, "--", "sh", "-c", f"echo {name} >/data/name")
    space.set_image("nginx:mainline")
    after = updated(space, 2)
    assert identities(after) == identities(before)
    for name in after:
        assert space.kubectl("exec", name, "--", "cat", "/data/name").strip() == name
    volumes = running.cluster.plane.places.volumes
    assert sorted(path.read_text().strip() for path in volumes.glob("*/name")) == sorted(after)
    space.scale(0)
    space.until(lambda: not list(volumes.glob("*/name")), PATIENCE)


@pytest.mark.parametrize(
    ("policy", "restarts"),
    [pytest.param("NotRequired", 0, id="live"), pytest.param("RestartContainer", 1, id="restart")],
)
def test_resources_are_resized_in_the_running_pod(space: Workspace, policy: str, restarts: int):
    """Gate InPlaceWorkloadVerticalScaling: the kubelet changes the control group of the container."""
    resources = {"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"cpu": "100m", "memory": "64Mi"}}
    resize = [{"resourceName": name, "restartPolicy": policy} for name in ("cpu", "memory")]
    container = {"name": "nginx", "image": "nginx:alpine", "resources": resources, "resizePolicy": resize}
    before = started(space, 1, template={"spec": {"containers": [container]}})
    start = space.now()
    larger = {"requests": {"cpu": "70m", "memory": "48Mi"}, "limits": {"cpu": "200m", "memory": "96Mi"}}
    space.json_patch({"op": "replace", "path": "/spec/template/spec/containers/0/resources", "value": larger})
    updated(space, 1)
    (name,) = before
    space.until(lambda: containers(space.pod(name))["nginx"]["resources"] == larger, PATIENCE)
    space.until(lambda: state(space.pod(name)) == "Normal" and is_ready(space.pod(name)), PATIENCE)
    assert identities(dict(space.pods)) == identities(before)
    assert containers(space.pod(name))["nginx"]["restartCount"] == restarts
    assert memory_limit(space, name) == 96 << 20
    stayed_ready = all(is_ready(event.object) for event in space.history(start) if not terminating(event.object))
    assert stayed_ready is (restarts == 0)


def memory_limit(space: Workspace, pod: str) -> int:
    """Return the limit that the kernel enforces."""
    files = "/sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes"
    return int(space.kubectl("exec", pod, "--", "sh", "-c", f"cat {files} 2>/dev/null || true"))
