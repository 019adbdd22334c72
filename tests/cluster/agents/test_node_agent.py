"""Node agents on real nodes: containers restart, environments follow metadata, images are pulled ahead."""

import json
from collections.abc import Iterator

import pytest

from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.clock import SystemClock
from tests.cluster.conftest import Staffed, scenario
from tests.support.cluster import eventually
from tests.support.doctor import doctor, named
from tests.support.stateful import IN_PLACE, statefulset
from tests.support.workspace import Workspace, cloneset, identity
from tests.testkit.documents import Json

pytestmark = pytest.mark.usefixtures("staffed")
PATIENCE = 60


@pytest.fixture
def stateful(staffed: Staffed, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """Yield a fresh namespace for StatefulSets."""
    with scenario(staffed.cluster, request, STATEFUL_SET) as made:
        yield made


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


def test_an_environment_of_a_statefulset_follows_its_label(stateful: Workspace) -> None:
    """The pod stays, its container restarts once, the other one not at all (nodeagent.md §5, example 20)."""
    manifest = statefulset(2, strategy=IN_PLACE | {"maxUnavailable": "100%"})
    template, wanted = manifest["spec"]["template"], env_from("conf")
    template["metadata"]["labels"] |= wanted["metadata"]["labels"]
    template["spec"] |= wanted["spec"]
    stateful.apply(manifest)
    stateful.settled("web", PATIENCE, replicas=2, readyReplicas=2)
    before = dict(stateful.pods)
    stateful.until(
        lambda: all("apps.kruise.io/runtime-containers-meta" in annotations(pod) for pod in stateful.pods.values()), 30
    )
    stateful.patch({"spec": {"template": {"metadata": {"labels": {"conf": "v2"}}}}}, "web")
    stateful.settled("web", PATIENCE, replicas=2, updatedReadyReplicas=2, readyReplicas=2)
    after = dict(stateful.pods)
    assert {identity(pod) for pod in after.values()} == {identity(pod) for pod in before.values()}
    for name, pod in after.items():
        assert environment(stateful, name) == "v2"
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


async def test_an_idle_agent_is_small_and_uses_next_to_nothing(staffed: Staffed) -> None:
    before = {node: staffed.agents.cpu_seconds(node) for node in staffed.cluster.names}
    await SystemClock().sleep(20)
    used = {node: (staffed.agents.cpu_seconds(node) - before[node]) / 20 for node in before}
    memory = {node: staffed.agents.rss_mib(node) for node in before}
    print(used, memory)
    assert max(used.values()) < 0.01
    assert max(memory.values()) < 60
