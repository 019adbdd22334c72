"""Containers that start in order, and sidecars that end with the work, in real pods (container-extras.md §A, §B)."""

from collections.abc import Iterator

import pytest

from tests.support.workspace import Workspace, cloneset, is_ready
from tests.testkit.documents import Json

pytestmark = pytest.mark.usefixtures("staffed")
PATIENCE = 90
OLD, NEW = "nginx:alpine", "nginx:mainline"
COMPLETED = "apps.kruise.io/container-launch-priority-completed"
META = "apps.kruise.io/runtime-containers-meta"
ORDERED = {"apps.kruise.io/container-launch-priority": "Ordered"}
TERMINATE, IGNORE = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE"
SLOW = ["sh", "-c", "sleep 1; touch /ready; trap 'exit 0' TERM; sleep infinity & wait"]
"""A container that is ready a second after it has started, and ends on SIGTERM."""


def container(name: str, priority: int | None = None, *, image: str = OLD, label: str = "") -> Json:
    """Return a container that takes a moment to become ready; `label`: a pod label in its environment."""
    env: list[Json] = [] if priority is None else [{"name": "KRUISE_CONTAINER_PRIORITY", "value": str(priority)}]
    if label:
        env.append({"name": "FROM", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}})
    probe = {"exec": {"command": ["test", "-e", "/ready"]}, "periodSeconds": 1}
    return {"name": name, "image": image, "command": SLOW, "env": env, "readinessProbe": probe}


def pod(space: Workspace, *containers: Json, annotations: dict[str, str] | None = None) -> None:
    """Create a pod `web`."""
    spec = {"containers": list(containers), "terminationGracePeriodSeconds": 2}
    metadata = {"name": "web", "annotations": annotations or {}}
    space.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def ready(found: Json) -> set[str]:
    """Return the ready containers."""
    return {one["name"] for one in found.get("status", {}).get("containerStatuses", ()) if one["ready"]}


def created(found: Json) -> set[str]:
    """Return the containers that have ever run."""
    statuses: list[Json] = found.get("status", {}).get("containerStatuses", [])
    return {one["name"] for one in statuses if one.get("containerID")}


def launches(space: Workspace, name: str) -> Iterator[tuple[str, set[str]]]:
    """Yield containers in order of creation, each with those that had been ready before."""
    seen, served = set[str](), set[str]()
    for event in space.history():
        if event.object["metadata"]["name"] == name:
            for new in sorted(created(event.object) - seen):
                yield new, set(served)
            seen |= created(event.object)
            served |= ready(event.object)


def keys(space: Workspace, name: str) -> set[str]:
    """Return the keys of the pod's ConfigMap."""
    return set(space.read("configmap", f"{name}-barrier")["data"])


def wait_ready(space: Workspace, name: str = "web") -> None:
    space.until(lambda: is_ready(space.pod(name)) and COMPLETED in space.pod(name)["metadata"]["annotations"], PATIENCE)


def test_in_the_order_of_the_list(space: Workspace) -> None:
    pod(space, container("c", 1), container("a", 9), container("b"), annotations=ORDERED)
    wait_ready(space)
    assert [name for name, _ in launches(space, "web")] == ["c", "a", "b"]
    space.kubectl("delete", "pod", "web")
    space.until(lambda: not space.read("configmaps", "--field-selector=metadata.name=web-barrier")["items"], PATIENCE)


def test_a_container_that_does_not_become_ready_holds_the_others(space: Workspace) -> None:
    stubborn = container("b", 10) | {"command": ["sleep", "infinity"]}
    pod(space, container("a"), stubborn)
    space.until(lambda: created(space.pod("web")) == {"b"}, PATIENCE)
    (waiting,) = (one["state"] for one in space.pod("web")["status"]["containerStatuses"] if one["name"] == "a")
    assert waiting["waiting"]["reason"] in ("CreateContainerConfigError", "ContainerCreating")
    assert keys(space, "web") == {"p_10"}
    space.kubectl("exec", "web", "-c", "b", "--", "touch", "/ready")
    wait_ready(space)
    assert keys(space, "web") == {"p_10", "p_0"}


def test_higher_priorities_first_in_pods_of_a_deployment(space: Workspace) -> None:
    """Their names are made of generateName, so the webhook has to choose them."""
    labels = {"app": "web"}
    containers = [container("a"), container("b", 10), container("c", -5)]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers, "terminationGracePeriodSeconds": 2}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    space.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    space.until(lambda: any(map(is_ready, space.pods.values())), PATIENCE)
    (name,) = space.pods
    wait_ready(space, name)
    assert list(launches(space, name)) == [("b", set()), ("a", {"b"}), ("c", {"a", "b"})]
    assert keys(space, name) == {"p_10", "p_0", "p_-5"}
    assert space.pod(name)["metadata"]["annotations"][COMPLETED] == "true"


def set_of(name: str, *containers: Json, **labels: str) -> Json:
    """Return a CloneSet of one pod that is updated in place."""
    manifest = cloneset(1, name=name, strategy={"podUpdatePolicy": "InPlaceOnly"})
    template = manifest["spec"]["template"]
    template["metadata"]["labels"] |= labels
    template["spec"] = {"containers": list(containers), "terminationGracePeriodSeconds": 2}
    return manifest


def pod_of(space: Workspace, name: str) -> Json:
    """Return the only pod of a CloneSet."""
    (found,) = (one for one in space.pods.values() if one["metadata"]["labels"]["app"] == name)
    return found


def restarts(found: Json) -> dict[str, int]:
    return {one["name"]: one["restartCount"] for one in found["status"]["containerStatuses"]}


def before_stop(space: Workspace, mark: int, name: str, container: str) -> Json:
    """Return the pod as it was last seen before the container was stopped."""
    last: Json = {}
    for event in space.history(mark):
        if event.object["metadata"]["name"] == name:
            if container not in ready(event.object) and last:
                return last
            last = event.object
    raise AssertionError(f"{container} was never stopped")


def test_13_updates_in_place_keep_the_order(space: Workspace) -> None:
    """Updates images, environments that come from metadata, and one of each; three sets side by side."""
    a, b = container("a", 5, label="x"), container("b", 1, label="y")
    changes = {
        "images": set_of("images", a | {"image": NEW}, b | {"image": NEW}, x="1", y="1"),
        "environments": set_of("environments", a, b, x="2", y="2"),
        "both": set_of("both", a | {"image": NEW}, b, x="1", y="2"),
    }
    for name in changes:
        space.apply(set_of(name, a, b, x="1", y="1"))
    for name in changes:
        space.settled(name, PATIENCE, readyReplicas=1)
        wait_ready(space, pod_of(space, name)["metadata"]["name"])
        space.until(lambda name=name: META in pod_of(space, name)["metadata"]["annotations"], PATIENCE)
    mark = space.now()
    before = {name: pod_of(space, name)["metadata"]["uid"] for name in changes}
    for manifest in changes.values():
        space.apply(manifest)
    for name in changes:
        space.settled(name, PATIENCE, updatedReadyReplicas=1)
        found = pod_of(space, name)
        assert (found["metadata"]["uid"], restarts(found)) == (before[name], {"a": 1, "b": 1})
        then = before_stop(space, mark, found["metadata"]["name"], "b")
        assert ("a" in ready(then), restarts(then)["a"]) == (True, 1), "b is left alone until a is ready again"
    for name, told in (("images", "1"), ("environments", "2"), ("both", "2")):
        pod_name = pod_of(space, name)["metadata"]["name"]
        assert space.kubectl("exec", pod_name, "-c", "b", "--", "sh", "-c", "echo $FROM").strip() == told


def job(space: Workspace, policy: str, sidecar: Json) -> None:
    """Create a Job `work`, whose main container ends after a second."""
    main = {"name": "main", "image": OLD, "command": ["sleep", "1"]}
    pod = {"restartPolicy": policy, "containers": [main, sidecar], "terminationGracePeriodSeconds": 2}
    spec = {"backoffLimit": 0, "template": {"spec": pod}}
    space.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": spec})


def sidecar(*names: str, command: list[str] | None = None) -> Json:
    """Return a container with these variables. By default it ends with 0 on SIGTERM."""
    env = [{"name": name, "value": "true"} for name in names]
    return {"name": "log", "image": OLD, "env": env} | ({"command": command} if command else {})


def ended(space: Workspace, condition: str) -> Json:
    """Wait until the Job has ended so; its pod."""

    def reached() -> bool:
        found: list[Json] = space.read("job", "work").get("status", {}).get("conditions", [])
        return any((one["type"], one["status"]) == (condition, "True") for one in found)

    space.until(reached, PATIENCE)
    (found,) = space.read("pods")["items"]
    return found


def exit_codes(found: Json) -> dict[str, int | None]:
    """Return the exit codes of all containers; None for a running one."""
    statuses: list[Json] = found["status"]["containerStatuses"]
    return {one["name"]: one["state"].get("terminated", {}).get("exitCode") for one in statuses}


def test_a_job_ends_although_its_sidecar_would_run_on(space: Workspace) -> None:
    job(space, "Never", sidecar(TERMINATE))
    found = ended(space, "Complete")
    assert (found["status"]["phase"], exit_codes(found)) == ("Succeeded", {"main": 0, "log": 0})
    (request,) = space.read("crr")["items"]
    assert request["metadata"]["name"] == f"sidecar-termination-{found['metadata']['uid']}"
    events = space.read("events", f"--field-selector=involvedObject.name={found['metadata']['name']}")["items"]
    told = [one["message"] for one in events if one["reason"] == "SidecarTerminator"]
    assert told == ["Try to terminate sidecar [log] using crr"]


def test_a_sidecar_that_ends_badly_fails_the_pod(space: Workspace) -> None:
    job(space, "Never", sidecar(TERMINATE, command=["sleep", "infinity"]))
    found = ended(space, "Failed")
    assert (found["status"]["phase"], exit_codes(found)) == ("Failed", {"main": 0, "log": 137})


def test_how_a_sidecar_ends_may_not_matter(space: Workspace) -> None:
    job(space, "OnFailure", sidecar(TERMINATE, IGNORE, command=["sleep", "infinity"]))
    found = ended(space, "Complete")
    assert found["status"]["phase"] == "Succeeded"
    assert "SidecarTerminated" in {one["type"] for one in found["status"]["conditions"]}
    space.until(lambda: exit_codes(space.read("pods")["items"][0])["log"] == 137, PATIENCE)
