"""Worked examples of containerrecreaterequest.md §12 on real nodes: real hooks, real stops, the real agent."""

from collections.abc import Iterator
from datetime import datetime

import pytest

from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.resources import POD
from tests.cluster.conftest import Staffed
from tests.support.workspace import Workspace, condition
from tests.testkit.documents import Json

pytestmark = pytest.mark.usefixtures("staffed")
PATIENCE = 60
WATCHED = (POD, RECREATE_REQUEST)
CRR = "ContainerRecreateRequest"
NODE = "real-0"
GRACE = "PreRecreateGrace"
STAFF = ("sidecar",)
SOON = {"terminationGracePeriodSeconds": 2}
LOOK = 3
"""Maximum seconds between two passes of an agent: as much may be lost when its clock is set between them."""
DEADLINE = "recreating has exceeded the activeDeadlineSeconds"


def container(name: str, hook: Json | None = None) -> Json:
    lifecycle = {"lifecycle": {"preStop": hook}} if hook else {}
    return (
        {"name": name, "image": "nginx:alpine"}
        | ({"command": ["sleep", "infinity"]} if name != "app" else {})
        | lifecycle
    )


def pod(space: Workspace, hook: Json | None = None, *, name: str = "web", gated: bool = False, **spec: object) -> Json:
    """Create a running pod with containers app and side, which ignore signals, so every stop takes its full grace."""
    gates = {"readinessGates": [{"conditionType": "KruisePodReady"}]} if gated else {}
    containers = [container("app", hook), container("side")]
    body = {"containers": containers, "terminationGracePeriodSeconds": 2, **gates, **spec}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}
    space.create(document)
    space.until(lambda: condition(space.pod(name), "Ready").get("status") == "True", PATIENCE)
    return space.pod(name)


def request(
    space: Workspace, *containers: str, name: str = "r", of: str = "web", strategy: Json | None = None, **spec: object
) -> None:
    document = {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": CRR,
        "metadata": {"name": name},
        "spec": {
            "podName": of,
            "containers": [{"name": one} for one in containers],
            "strategy": strategy or {},
            **spec,
        },
    }
    space.create(document)


def status(space: Workspace, name: str = "r") -> Json:
    return space.read("crr", name).get("status", {})


def completed(space: Workspace, name: str = "r", message: str = "") -> list[tuple[str, str, bool]]:
    """Wait for the end; the states of the containers."""
    space.until(lambda: status(space, name).get("phase") == "Completed", PATIENCE)
    found = status(space, name)
    assert found.get("message", "") == message
    return states(found)


def states(found: Json) -> list[tuple[str, str, bool]]:
    return [(one["name"], one["phase"], one.get("isKilled", False)) for one in found.get("containerRecreateStates", ())]


def restarts(space: Workspace, name: str = "web") -> dict[str, int]:
    return {one["name"]: one["restartCount"] for one in space.read("pod", name)["status"]["containerStatuses"]}


def course(space: Workspace) -> Iterator[list[tuple[str, str, bool]]]:
    """Yield the different states that a watch saw, in order."""
    seen: list[tuple[str, str, bool]] = []
    for event in space.history(kind=CRR):
        now = states(event.object.get("status", {}))
        if now and now != seen:
            seen = now
            yield now


def test_2_two_containers_one_after_the_other_without_waiting(space: Workspace) -> None:
    before = pod(space)
    request(space, "app", "side")
    assert completed(space) == [("app", "Succeeded", True), ("side", "Succeeded", True)]
    after = space.read("pod", "web")
    assert restarts(space) == {"app": 1, "side": 1}
    assert (after["metadata"]["uid"], after["status"]["podIP"]) == (
        before["metadata"]["uid"],
        before["status"]["podIP"],
    )
    first, second, third, *_ = course(space)
    assert first == [("app", "Pending", False), ("side", "Pending", False)]
    assert second == [("app", "Recreating", True), ("side", "Pending", False)]
    assert third[1] == ("side", "Recreating", True)


def test_3_in_order_the_second_waits_for_the_first(space: Workspace) -> None:
    pod(space)
    request(space, "app", "side", strategy={"orderedRecreate": True, "minStartedSeconds": 3})
    assert completed(space) == [("app", "Succeeded", True), ("side", "Succeeded", True)]
    for (_, app, _), (_, side, _) in course(space):
        assert side == "Pending" or app == "Succeeded"


@pytest.mark.parametrize(("force", "count"), [pytest.param(False, 1, id="6"), pytest.param(True, 2, id="7 forced")])
async def test_6_7_restarted_by_the_kubelet_before_the_agent_looked(
    space: Workspace, staffed: Staffed, force: bool, count: int
) -> None:
    node = pod(space)["spec"]["nodeName"]
    await staffed.agents.kill(node)
    request(space, "side", strategy={"forceRecreate": force})
    identity = space.read("crr", "r")["spec"]["containers"][0]["statusContext"]["containerID"]
    staffed.cluster.run_in(node, "ctr", "-n", "k8s.io", "tasks", "kill", "-s", "9", identity.partition("://")[2])
    space.until(lambda: restarts(space)["side"] == 1, PATIENCE)
    await staffed.agents.start(node)
    assert completed(space) == [("side", "Succeeded", True)]
    assert restarts(space) == {"app": 0, "side": count}


def test_10_the_deadline_comes_in_the_middle_of_a_hook(space: Workspace) -> None:
    pod(space, {"exec": {"command": ["sleep", "10"]}}, terminationGracePeriodSeconds=60)
    request(space, "app", "side", activeDeadlineSeconds=4)
    assert completed(space, message=DEADLINE) == [("app", "Failed", False), ("side", "Failed", False)]
    assert restarts(space) == {"app": 0, "side": 0}
    space.until(lambda: states(status(space)) == [("app", "Failed", True), ("side", "Failed", False)], PATIENCE)
    space.until(lambda: restarts(space) == {"app": 1, "side": 0}, PATIENCE)
    assert status(space)["message"] == DEADLINE


@pytest.mark.parametrize(
    ("hook", "grace", "least", "most"),
    [
        pytest.param({"exec": {"command": ["sleep", "30"]}}, 3, 3, 15, id="11 a hook that takes too long"),
        pytest.param({"exec": {"command": ["sleep", "30"]}}, 0, 0, 12, id="12 no grace, no hook"),
        pytest.param({"sleep": {"seconds": 4}}, 30, 4, 20, id="a sleep"),
        pytest.param({"exec": {"command": ["sh", "-c", "yes | head -c 12000000"]}}, 30, 0, 20, id="much output"),
    ],
)
def test_11_12_hooks(space: Workspace, hook: Json, grace: int, least: int, most: int) -> None:
    pod(space, hook, terminationGracePeriodSeconds=30)
    request(space, "app", strategy={"terminationGracePeriodSeconds": grace})
    assert completed(space) == [("app", "Succeeded", True)]
    found = space.read("crr", "r")
    (new,) = (one for one in space.read("pod", "web")["status"]["containerStatuses"] if one["name"] == "app")
    took = moment(new["lastState"]["terminated"]["finishedAt"]) - moment(found["metadata"]["creationTimestamp"])
    assert least <= took.total_seconds() <= most


def test_13_out_of_service_before_the_stop(space: Workspace) -> None:
    pod(space, gated=True)
    since = space.now()
    request(space, "app", strategy={"unreadyGracePeriodSeconds": 3})
    assert completed(space) == [("app", "Succeeded", True)]
    begin = moment(condition(space.read("crr", "r"), "PreRecreateGrace")["lastTransitionTime"])
    (app,) = (one for one in space.read("pod", "web")["status"]["containerStatuses"] if one["name"] == "app")
    assert (moment(app["lastState"]["terminated"]["finishedAt"]) - begin).total_seconds() >= 3
    space.until(lambda: condition(space.pod("web"), "Ready")["status"] == "True", PATIENCE)
    seen = [condition(event.object, "Ready").get("status") for event in space.history(since)]
    assert "False" in seen
    assert condition(space.pod("web"), "KruisePodReady")["message"] == "[]"


async def test_the_clock_is_set_in_the_middle_of_restarts(space: Workspace, staffed: Staffed) -> None:
    """The clock is set an hour forward, then two hours back.

    This happens while a hook runs, while a pod is kept out of service, and while a new container has to prove itself.
    It is the agent's clock (tests.support.set_clock); the runtime has another one.
    """
    hook = {"exec": {"command": ["sh", "-c", "echo begun >> /notes/hook; sleep 8; echo done >> /notes/hook"]}}
    mount = {"volumeMounts": [{"name": "notes", "mountPath": "/notes"}]}
    noted = [container("app", hook) | mount, container("side") | mount]
    pod(space, name="hooked", nodeName=NODE, containers=noted, volumes=[{"name": "notes", "emptyDir": {}}])
    pod(space, name="drained", nodeName=NODE, gated=True)
    pod(space, name="proving", nodeName=NODE)
    async with staffed.agents.wrong_clock(NODE) as wrong:
        request(space, "side", name="drained", of="drained", strategy={"unreadyGracePeriodSeconds": 8} | SOON)
        request(space, "side", name="proving", of="proving", strategy={"minStartedSeconds": 8} | SOON)
        request(space, "app", name="hooked", of="hooked", strategy={"terminationGracePeriodSeconds": 12})
        space.until(lambda: notes(space)[:1] == ["begun"] and bool(condition(space.read("crr", "drained"), GRACE)))
        wrong(3600)
        space.until(lambda: restarts(space, "proving")["side"] == 1, PATIENCE)
        wrong(-3600)
        assert completed(space, "hooked") == [("app", "Succeeded", True)]
        assert completed(space, "drained") == completed(space, "proving") == [("side", "Succeeded", True)]
    assert notes(space) == ["begun", "done"]
    assert [restarts(space, name) for name in ("hooked", "drained", "proving")] == [
        {"app": 1, "side": 0},
        {"app": 0, "side": 1},
        {"app": 0, "side": 1},
    ]
    made = moment(space.read("crr", "hooked")["metadata"]["creationTimestamp"])
    begin = moment(condition(space.read("crr", "drained"), GRACE)["lastTransitionTime"])
    proven = moment(space.read("crr", "proving")["status"]["completionTime"])
    assert 8 <= seconds(made, stopped(space, "hooked", "app")) < 60
    assert 8 - LOOK <= seconds(begin, stopped(space, "drained", "side")) < 60
    assert 8 - LOOK <= seconds(started(space, "proving", "side"), proven) < 60


def notes(space: Workspace) -> list[str]:
    return space.kubectl("exec", "hooked", "-c", "side", "--", "sh", "-c", "cat /notes/hook || true").split()


def state(space: Workspace, name: str, one: str) -> Json:
    found: list[Json] = space.read("pod", name)["status"]["containerStatuses"]
    return next(status for status in found if status["name"] == one)


def stopped(space: Workspace, name: str, one: str) -> datetime:
    """Return when the previous container ended."""
    return moment(state(space, name, one)["lastState"]["terminated"]["finishedAt"])


def started(space: Workspace, name: str, one: str) -> datetime:
    return moment(state(space, name, one)["state"]["running"]["startedAt"])


def seconds(begin: datetime, end: datetime) -> float:
    return (end - begin).total_seconds()


def test_15_two_requests_for_one_pod(space: Workspace) -> None:
    pod(space)
    request(space, "app", name="first")
    request(space, "app", name="second", strategy={"forceRecreate": True})
    assert completed(space, "first") == completed(space, "second") == [("app", "Succeeded", True)]
    assert restarts(space) == {"app": 2, "side": 0}
    phases = [
        (event.object["metadata"]["name"], event.object.get("status", {}).get("phase", ""))
        for event in space.history(kind=CRR)
    ]
    assert phases.index(("first", "Completed")) < phases.index(("second", "Recreating"))


def test_25_a_pod_that_is_never_started_again(space: Workspace) -> None:
    pod(space, restartPolicy="Never")
    request(space, "side", activeDeadlineSeconds=15)
    assert completed(space, message=DEADLINE) == [("side", "Failed", True)]


def test_fifty_requests_at_once(space: Workspace) -> None:
    names = [f"web-{number}" for number in range(25)]
    for name in names:
        body = {"containers": [container("app"), container("side")], "terminationGracePeriodSeconds": 2}
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}
        space.create(document)
    space.until(lambda: sum(condition(one, "Ready").get("status") == "True" for one in space.pods.values()) == 25, 120)
    for name in names:
        for one in ("app", "side"):
            request(space, one, name=f"{name}-{one}", of=name)

    def all_done() -> bool:
        items = space.read("crr")["items"]
        return sum(item.get("status", {}).get("phase") == "Completed" for item in items) == 50

    space.until(all_done, 120)
    for item in space.read("crr")["items"]:
        assert [one[1:] for one in states(item["status"])] == [("Succeeded", True)]
    for found in space.read("pods")["items"]:
        assert {one["restartCount"] for one in found["status"]["containerStatuses"]} == {1}


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
