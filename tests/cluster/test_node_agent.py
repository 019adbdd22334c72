"""Node agents on real nodes: containers restart, environments follow metadata, images are pulled ahead."""

import json

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.resources import POD
from flotilla_common.clock import SystemClock
from tests.cluster.conftest import Staffed
from tests.support.cluster import eventually
from tests.support.doctor import doctor, named
from tests.support.stateful import IN_PLACE, statefulset
from tests.support.workspace import Workspace, cloneset, identity, new_namespace
from tests.testkit.documents import Json

pytestmark = pytest.mark.usefixtures("staffed")
WATCHED = (POD, CLONE_SET, STATEFUL_SET)
STAFF = ("statefulset",)
PATIENCE = 60


def env_from(label: str) -> Json:
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}
    container = {"name": "nginx", "image": "nginx:alpine", "env": [{"name": "APP_CONF", "valueFrom": source}]}
    agent = {"name": "agent", "image": "httpd:2.4", "command": ["sleep", "infinity"]}
    return {
        "metadata": {"labels": {label: "v1"}},
        "spec": {"containers": [container, agent], "terminationGracePeriodSeconds": 2},
    }


def containers(pod: Json) -> dict[str, Json]:
    return {status["name"]: status for status in pod["status"]["containerStatuses"]}


def environment(space: Workspace, pod: str) -> str:
    return space.kubectl("exec", pod, "-c", "nginx", "--", "sh", "-c", "echo $APP_CONF").strip()


def test_an_environment_follows_its_label(space: Workspace) -> None:
    """The pod stays, its container restarts once, the other one not at all (nodeagent.md §5, example 20)."""
    strategy = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%"}
    space.apply(cloneset(3, strategy=strategy, template=env_from("conf")))
    check_environment(space, "sample")


def test_an_environment_of_a_statefulset_does(staffed: Staffed, request: pytest.FixtureRequest) -> None:
    namespace = new_namespace(staffed.cluster, request.node.nodeid)
    space = Workspace(staffed.cluster, staffed.recorder, namespace, STATEFUL_SET)
    manifest = statefulset(3, strategy=IN_PLACE | {"maxUnavailable": "100%"})
    template, wanted = manifest["spec"]["template"], env_from("conf")
    template["metadata"]["labels"] |= wanted["metadata"]["labels"]
    template["spec"] |= wanted["spec"]
    space.apply(manifest)
    check_environment(space, "web")


def check_environment(space: Workspace, workload: str) -> None:
    """Give the label of three pods another value."""
    space.settled(workload, PATIENCE, replicas=3, readyReplicas=3)
    before = dict(space.pods)
    space.until(
        lambda: all("apps.kruise.io/runtime-containers-meta" in annotations(pod) for pod in space.pods.values()), 30
    )
    space.patch({"spec": {"template": {"metadata": {"labels": {"conf": "v2"}}}}}, workload)
    space.settled(workload, PATIENCE, replicas=3, updatedReadyReplicas=3, readyReplicas=3)
    after = dict(space.pods)
    assert {identity(pod) for pod in after.values()} == {identity(pod) for pod in before.values()}
    for name, pod in after.items():
        assert environment(space, name) == "v2"
        assert containers(pod)["nginx"]["restartCount"] == 1
        assert containers(pod)["agent"]["restartCount"] == 0
        meta = json.loads(annotations(pod)["apps.kruise.io/runtime-containers-meta"])
        assert [one["containerID"] for one in meta["containers"]] == [
            containers(pod)[one["name"]]["containerID"] for one in meta["containers"]
        ]


def annotations(pod: Json) -> dict[str, str]:
    return pod["metadata"].get("annotations", {})


def request(name: str, pod: str, *names: str, **strategy: object) -> Json:
    return {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "ContainerRecreateRequest",
        "metadata": {"name": name},
        "spec": {"podName": pod, "containers": [{"name": one} for one in names], "strategy": strategy},
    }


def phase(space: Workspace, name: str) -> str:
    return space.read("crr", name).get("status", {}).get("phase", "")


def test_a_container_is_recreated(space: Workspace) -> None:
    space.apply(cloneset(1, template=env_from("conf")))
    space.settled(seconds=PATIENCE, replicas=1, readyReplicas=1)
    (pod,) = space.pods.values()
    name = pod["metadata"]["name"]
    space.create(request("r", name, "nginx", minStartedSeconds=3))
    space.until(lambda: phase(space, "r") == "Completed", PATIENCE)
    states = space.read("crr", "r")["status"]["containerRecreateStates"]
    assert [(one["name"], one["phase"], one["isKilled"]) for one in states] == [("nginx", "Succeeded", True)]
    after = space.read("pod", name)
    assert containers(after)["nginx"]["restartCount"] == 1
    assert containers(after)["agent"]["containerID"] == containers(pod)["agent"]["containerID"]
    assert identity(after) == identity(pod)
    events = space.read("events")["items"]
    killing = [
        one for one in events if one["reason"] == "Killing" and one["source"]["component"] == "kruise-daemon-crr"
    ]
    assert killing[0]["message"] == "Stopping container nginx by ContainerRecreateRequest r"


async def test_agents_are_small(staffed: Staffed) -> None:
    for node in staffed.cluster.names:
        assert staffed.agents.rss_mib(node) < 60, node


def started(space: Workspace, hook: str = "") -> str:
    """Create one pod whose container writes a line before it stops. Returns its name."""
    template = env_from("conf")
    if hook:
        template["spec"]["terminationGracePeriodSeconds"] = 30
        template["spec"]["containers"][0]["lifecycle"] = {"preStop": {"exec": {"command": ["sh", "-c", hook]}}}
    space.apply(cloneset(1, template=template))
    space.settled(seconds=PATIENCE, replicas=1, readyReplicas=1)
    (name,) = space.pods
    return name


def recreated(space: Workspace, pod: str, request_name: str = "r") -> None:
    """Wait for the request's end; its container was restarted exactly once."""
    space.until(lambda: phase(space, request_name) == "Completed", PATIENCE)
    states = space.read("crr", request_name)["status"]["containerRecreateStates"]
    assert [(one["phase"], one["isKilled"]) for one in states] == [("Succeeded", True)]
    assert containers(space.read("pod", pod))["nginx"]["restartCount"] == 1


async def under_way(space: Workspace, pod: str) -> str:
    """Begin to recreate a container whose hook takes 6 seconds, and wait until the hook runs. Returns its node."""
    space.create(request("r", pod, "nginx"))
    space.until(lambda: any(one["reason"] == "Killing" for one in space.read("events")["items"]), PATIENCE)
    return space.pod(pod)["spec"]["nodeName"]


async def test_an_agent_killed_in_a_pre_stop_hook(space: Workspace, staffed: Staffed) -> None:
    pod = started(space, "sleep 6")
    node = await under_way(space, pod)
    await staffed.agents.kill(node)
    await staffed.agents.start(node)
    recreated(space, pod)


async def test_containerd_restarts_in_a_pre_stop_hook(space: Workspace, staffed: Staffed) -> None:
    pod = started(space, "sleep 6")
    node = await under_way(space, pod)
    await staffed.cluster.kill(node, "containerd")
    await staffed.cluster.repair()
    recreated(space, pod)


async def test_the_bus_is_away_for_a_minute(space: Workspace, staffed: Staffed) -> None:
    """Started work ends meanwhile, new requests are carried out afterwards, and each happens once.

    (Only a request that could not be started for a whole minute is abandoned.)
    """
    pod = started(space, "sleep 6")
    await under_way(space, pod)
    await staffed.fleet.kill_bus()
    await SystemClock().sleep(45)
    late = request("late", pod, "agent", terminationGracePeriodSeconds=2)
    space.create(late)
    await SystemClock().sleep(15)
    assert containers(space.read("pod", pod))["nginx"]["restartCount"] == 1
    await staffed.fleet.start_bus()
    recreated(space, pod)
    space.until(lambda: phase(space, "late") == "Completed", PATIENCE)
    assert {one["restartCount"] for one in containers(space.read("pod", pod)).values()} == {1}


async def test_images_are_pulled_ahead(space: Workspace, staffed: Staffed) -> None:
    await staffed.cluster.registry.push("ahead:v1", ["/bin/sh", "-c", "sleep 1000"], {"/ahead": b"x" * 100_000})
    job = {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "ImagePullJob",
        "metadata": {"name": "ahead"},
        "spec": {"image": "ahead:v1", "parallelism": 3, "completionPolicy": {"type": "Always"}},
    }
    space.create(job)
    space.until(lambda: space.read("imagepulljob", "ahead").get("status", {}).get("succeeded") == 3, PATIENCE)
    for node in staffed.cluster.names:
        assert "docker.io/library/ahead:v1" in staffed.cluster.run_in(
            node, "ctr", "-n", "k8s.io", "images", "list", "-q"
        )
        status = staffed.cluster.read("nodeimage", node)["status"]
        (entry,) = status["imageStatuses"]["ahead"]["tags"]
        assert (entry["phase"], entry["progress"]) == ("Succeeded", 100)
        assert entry["imageID"].startswith("ahead@sha256:")


async def test_an_image_that_is_not_there(space: Workspace, staffed: Staffed) -> None:
    job = {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "ImagePullJob",
        "metadata": {"name": "missing"},
        "spec": {
            "image": "never:pushed",
            "parallelism": 3,
            "pullPolicy": {"backoffLimit": 1},
            "completionPolicy": {"type": "Always"},
        },
    }
    space.create(job)
    space.until(lambda: space.read("imagepulljob", "missing").get("status", {}).get("failed") == 3, PATIENCE)
    entry = staffed.cluster.read("nodeimage", "real-0")["status"]["imageStatuses"]["never"]["tags"][0]
    assert "not found" in entry["message"]


async def test_the_doctor_names_what_is_wrong_with_agents(staffed: Staffed) -> None:
    cluster, on = staffed.cluster, staffed.agents
    await on.kill("real-2")
    await cluster.kill("real-1", "containerd")
    async with on.wrong_clock("real-0") as put:
        put(-300)
        await eventually(lambda: "[-]runtime" in on.page("real-1", "readyz"))
        _, report = await doctor(staffed.fleet)
    await cluster.repair()
    await on.start("real-2")
    await on.ready("real-1")
    assert named(report) == {
        ("AgentSilent", "agent of real-2"),
        ("RuntimeUnanswered", "agent of real-1"),
        ("ClockOff", "nodeagent real-0"),
    }


async def test_an_idle_agent_uses_next_to_nothing(staffed: Staffed) -> None:
    before = {node: staffed.agents.cpu_seconds(node) for node in staffed.cluster.names}
    await SystemClock().sleep(20)
    used = {node: (staffed.agents.cpu_seconds(node) - before[node]) / 20 for node in before}
    print(used, {node: staffed.agents.rss_mib(node) for node in before})
    assert max(used.values()) < 0.01
