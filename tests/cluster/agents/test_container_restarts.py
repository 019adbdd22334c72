"""Worked examples of containerrecreaterequest.md §12 on real nodes: real hooks, real stops, the real agent."""

from collections.abc import Iterator
from datetime import datetime

import pytest

from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from tests.cluster.conftest import Staffed
from tests.support.workspace import Workspace, condition, identity, moment
from tests.testkit.documents import Json

pytestmark = pytest.mark.usefixtures("staffed")
PATIENCE = 60
WATCHED = (RECREATE_REQUEST,)
CRR = "ContainerRecreateRequest"
NODE = "real-0"
GRACE = "PreRecreateGrace"
SOON = {"terminationGracePeriodSeconds": 2}
LOOK = 3
"""Maximum seconds between two passes of an agent: as much may be lost when its clock is set between them."""


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


def completed(space: Workspace, name: str = "r") -> list[tuple[str, str, bool]]:
    """Wait for the end; the states of the containers."""
    space.until(lambda: status(space, name).get("phase") == "Completed", PATIENCE)
    found = status(space, name)
    assert found.get("message", "") == ""
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


def test_3_in_order_the_second_waits_for_the_first(space: Workspace) -> None:
    """The pod stays, and its events say who stopped the containers."""
    before = pod(space)
    request(space, "app", "side", strategy={"orderedRecreate": True, "minStartedSeconds": 3})
    assert completed(space) == [("app", "Succeeded", True), ("side", "Succeeded", True)]
    for (_, app, _), (_, side, _) in course(space):
        assert side == "Pending" or app == "Succeeded"
    assert restarts(space) == {"app": 1, "side": 1}
    assert identity(space.read("pod", "web")) == identity(before)
    events = space.read("events")["items"]
    told = {
        one["message"]
        for one in events
        if (one["reason"], one["source"].get("component")) == ("Killing", "kruise-daemon-crr")
    }
    assert told == {f"Stopping container {name} by ContainerRecreateRequest r" for name in ("app", "side")}


async def test_6_restarted_by_the_kubelet_before_the_agent_looked(space: Workspace, staffed: Staffed) -> None:
    node = pod(space)["spec"]["nodeName"]
    await staffed.agents.kill(node)
    request(space, "side")
    identity = space.read("crr", "r")["spec"]["containers"][0]["statusContext"]["containerID"]
    staffed.cluster.run_in(node, "ctr", "-n", "k8s.io", "tasks", "kill", "-s", "9", identity.partition("://")[2])
    space.until(lambda: restarts(space)["side"] == 1, PATIENCE)
    await staffed.agents.start(node)
    assert completed(space) == [("side", "Succeeded", True)]
    assert restarts(space) == {"app": 0, "side": 1}


@pytest.mark.parametrize(
    ("grace", "least", "most"),
    [pytest.param(3, 3, 15, id="11 a hook that takes too long"), pytest.param(0, 0, 12, id="12 no grace, no hook")],
)
def test_11_12_hooks(space: Workspace, grace: int, least: int, most: int) -> None:
    hook: Json = {"exec": {"command": ["sleep", "30"]}}
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
