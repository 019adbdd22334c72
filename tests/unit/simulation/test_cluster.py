"""The simulated cluster: what users see of scheduler, kubelets, nodes and claims."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from flotilla_common.api.resources import CLAIM, CONFIG_MAP, JOB, NAMESPACE, NODE, POD
from flotilla_common.control.plan import Json
from tests.simulation.apiserver.client import SimulatedApi
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.cluster.cluster import Cluster
from tests.simulation.cluster.kubelet import COMPLETE_ANNOTATION, EXITS_ANNOTATION, STOP_ANNOTATION
from tests.simulation.contract.apiserver.bench import STRATEGIC, Bench, encode, meta
from tests.simulation.history import History
from tests.simulation.loop import SimulatedClock, SimulatedLoop, run


class Place(Bench):
    """A namespace in a cluster of three nodes."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.clock = SimulatedClock(loop)
        self.history = History()
        self.server = ApiServer(self.clock, self.history)
        self.cluster = Cluster(self.server)
        super().__init__(SimulatedApi(self.server, "user"), "shop")

    async def begin(self) -> None:
        await self.cluster.add_nodes(3)
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        await self.api.create(NAMESPACE, "", encode(body))

    async def rest(self) -> None:
        """Wait until nobody has anything to do."""
        while self.cluster.busy:
            await self.clock.sleep(0.05)

    async def pod(self, name: str = "web", *, spec: Json | None = None, **metadata: Any) -> Json:
        """A new pod, when the cluster has done what it does about it."""
        wanted = {"containers": [{"name": "main", "image": "nginx:1"}]} | (spec or {})
        await self.create(POD, {"metadata": {"name": name} | metadata, "spec": wanted})
        await self.rest()
        return await self.get(POD, name)

    async def image(self, image: str, name: str = "web") -> Json:
        """The pod when it has been updated in place."""
        await self.patch(POD, name, {"spec": {"containers": [{"name": "main", "image": image}]}}, STRATEGIC)
        await self.rest()
        return await self.get(POD, name)

    def states(self, name: str = "web") -> list[tuple[str, str, int, str]]:
        """What the pod's history shows: running image (empty for none), Ready, restarts, phase; without repetitions."""
        seen: list[tuple[str, str, int, str]] = []
        for version in self.history.of(POD, self.namespace, name):
            state = _state(version.after) if version.after else ("", "gone", 0, "")
            if not seen or seen[-1] != state:
                seen.append(state)
        return seen


def _state(pod: Json) -> tuple[str, str, int, str]:
    status = pod["status"].get("containerStatuses", [{"state": {}, "restartCount": 0}])[0]
    image = status["image"] if "running" in status["state"] else ""
    return image, condition(pod, "Ready"), status["restartCount"], pod["status"]["phase"]


def condition(document: Json, kind: str) -> str:
    """The status of a condition; empty for none."""
    return next((one["status"] for one in document["status"].get("conditions", []) if one["type"] == kind), "")


Story = Callable[[Place], Awaitable[None]]


@pytest.fixture
def play() -> Callable[[Story], None]:
    def play(story: Story) -> None:
        async def main(loop: SimulatedLoop) -> None:
            place = Place(loop)
            await place.begin()
            await story(place)

        run(main)

    return play


def test_a_pod_starts(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        pods = [await place.pod(name) for name in "abcd"]
        assert [pod["spec"]["nodeName"] for pod in pods] == ["node-1", "node-2", "node-3", "node-1"]
        assert {condition(pods[0], kind) for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")} == {
            "True"
        }
        assert len({pod["status"]["podIP"] for pod in pods}) == 4
        assert place.states("a") == [("", "", 0, "Pending"), ("nginx:1", "True", 0, "Running")]

    play(story)


def test_a_new_image_restarts_the_container(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        old = (await place.pod())["status"]["containerStatuses"][0]
        new = (await place.image("nginx:2"))["status"]["containerStatuses"][0]
        assert (new["image"], new["restartCount"]) == ("nginx:2", 1)
        assert old["imageID"] != new["imageID"]
        assert old["containerID"] != new["containerID"]
        assert place.states()[1:] == [
            ("nginx:1", "True", 0, "Running"),
            ("", "False", 0, "Running"),
            ("nginx:2", "True", 1, "Running"),
        ]

    play(story)


def test_readiness_follows_the_gates(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        pod = await place.pod(spec={"readinessGates": [{"conditionType": "Mine"}]})
        assert (condition(pod, "Ready"), condition(pod, "ContainersReady")) == ("False", "True")
        for status in ("True", "False"):
            mine = {"status": {"conditions": [{"type": "Mine", "status": status}]}}
            await place.patch(POD, "web", mine, STRATEGIC, "status")
            await place.rest()
            assert condition(await place.get(POD, "web"), "Ready") == status

    play(story)


def test_a_container_dies(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        await place.pod()
        place.cluster.crash_container("shop", "web", "main")
        await place.rest()
        assert place.states()[2:] == [("", "False", 0, "Running"), ("nginx:1", "True", 1, "Running")]

    play(story)


def test_an_image_that_cannot_be_pulled(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        place.cluster.broken_images.add("nginx:broken")
        await place.pod()
        assert condition(await place.image("nginx:broken"), "Ready") == "False"
        assert place.states()[-1] == ("", "False", 0, "Running")
        assert condition(await place.image("nginx:2"), "Ready") == "True"
        assert place.states()[-1] == ("nginx:2", "True", 1, "Running")
        pending = await place.pod("new", spec={"containers": [{"name": "main", "image": "nginx:broken"}]})
        assert pending["status"]["phase"] == "Pending"
        place.cluster.mend_image("nginx:broken")
        await place.rest()
        assert place.states("new")[-1] == ("nginx:broken", "True", 0, "Running")

    play(story)


def test_a_deleted_pod_ends(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        await place.pod()
        await place.delete(POD, "web")
        await place.rest()
        assert place.states()[-2:] == [("", "False", 0, "Succeeded"), ("", "gone", 0, "")]

    play(story)


@pytest.mark.parametrize(
    ("wanted", "grace", "seconds"),
    [("2.5", 30, 2.5), ("9", 4, 4), ("9", 0, 0)],
    ids=["takes its time", "is killed in the end", "is forced"],
)
def test_a_slow_end(play: Callable[[Story], None], wanted: str, grace: int, seconds: float) -> None:
    async def story(place: Place) -> None:
        await place.pod(annotations={STOP_ANNOTATION: wanted})
        started = place.clock.monotonic()
        await place.delete(POD, "web", {"gracePeriodSeconds": grace})
        await place.rest()
        assert place.states()[-1][1] == "gone"
        assert place.history.versions[-1].at - started == pytest.approx(seconds, abs=0.02)

    play(story)


def test_a_pod_that_succeeds(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        pod = await place.pod(annotations={COMPLETE_ANNOTATION: ""})
        assert pod["status"]["phase"] == "Succeeded"

    play(story)


@pytest.mark.parametrize(
    ("policy", "exits", "phase", "states"),
    [
        pytest.param("Never", {"main": 0}, "Succeeded", ["terminated"], id="ended"),
        pytest.param("Never", {"main": 3}, "Failed", ["terminated"], id="failed"),
        pytest.param("OnFailure", {"main": 0}, "Succeeded", ["terminated"], id="ended, and not to be started again"),
    ],
)
def test_a_container_that_ends_by_itself(
    policy: str, exits: dict[str, int], phase: str, states: list[str], play: Callable[[Story], None]
) -> None:
    async def story(place: Place) -> None:
        annotations = {EXITS_ANNOTATION: encode(exits).decode()}
        pod = await place.pod(annotations=annotations, spec={"restartPolicy": policy})
        assert pod["status"]["phase"] == phase
        assert [state for one in pod["status"]["containerStatuses"] for state in one["state"]] == states

    play(story)


def test_a_container_that_ends_otherwise_the_next_time(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        annotations = {EXITS_ANNOTATION: encode({"main": [1, 0]}).decode()}
        pod = await place.pod(annotations=annotations, spec={"restartPolicy": "OnFailure"})
        (status,) = pod["status"]["containerStatuses"]
        assert (pod["status"]["phase"], status["restartCount"]) == ("Succeeded", 1)

    play(story)


@pytest.mark.parametrize(
    ("container", "state"),
    [
        pytest.param({"command": ["exit", "3"]}, {"terminated": 3}, id="ended"),
        pytest.param({"command": ["sh"]}, {"running": None}, id="running"),
        pytest.param({"image": "nginx:broken"}, {"waiting": None}, id="not to be pulled"),
    ],
)
def test_an_ephemeral_container(container: Json, state: Json, play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        place.cluster.broken_images.add("nginx:broken")
        before = await place.pod()
        patch = {"spec": {"ephemeralContainers": [{"name": "dbg", "image": "busybox:1"} | container]}}
        await place.patch(POD, "web", patch, STRATEGIC, "ephemeralcontainers")
        await place.rest()
        pod = await place.get(POD, "web")
        (status,) = pod["status"]["ephemeralContainerStatuses"]
        assert {name: one.get("exitCode") for name, one in status["state"].items()} == state
        assert pod["status"]["containerStatuses"] == before["status"]["containerStatuses"]
        assert condition(pod, "Ready") == "True"

    play(story)


def test_an_image_of_an_ephemeral_container_that_can_be_pulled_again(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        place.cluster.broken_images.add("busybox:1")
        await place.pod()
        patch = {"spec": {"ephemeralContainers": [{"name": "dbg", "image": "busybox:1"}]}}
        await place.patch(POD, "web", patch, STRATEGIC, "ephemeralcontainers")
        await place.rest()
        place.cluster.mend_image("busybox:1")
        await place.rest()
        (status,) = (await place.get(POD, "web"))["status"]["ephemeralContainerStatuses"]
        assert "running" in status["state"]

    play(story)


def once(name: str, exits: object, **spec: Any) -> Json:
    """A Job whose pod ends with these codes."""
    metadata = {"annotations": {EXITS_ANNOTATION: encode({"main": exits}).decode()}}
    pods = {"containers": [{"name": "main", "image": "nginx:1"}], "restartPolicy": "Never"}
    return {"metadata": {"name": name}, "spec": {"template": {"metadata": metadata, "spec": pods}, **spec}}


@pytest.mark.parametrize(
    ("code", "limit", "end", "pods"),
    [(0, 6, "Complete", 1), (1, 0, "Failed", 1), (1, 1, "Failed", 2)],
    ids=["completed", "failed", "failed twice"],
)
def test_a_job(code: int, limit: int, end: str, pods: int, play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        await place.create(JOB, once("job", code, backoffLimit=limit))
        await place.rest()
        status = (await place.get(JOB, "job"))["status"]
        assert [one["type"] for one in status["conditions"]] == [end]
        assert (status["active"], status["succeeded"] + status["failed"]) == (0, pods)
        assert len(await place.names(POD)) == pods

    play(story)


def test_a_job_that_is_over_for_a_while(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        await place.create(JOB, once("job", 0, ttlSecondsAfterFinished=2))
        await place.rest()
        assert not await place.exists(JOB, "job")
        assert not await place.names(POD)

    play(story)


def test_a_container_that_waits_for_a_key(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        reference = {"name": "keys", "key": "go"}
        env = [{"name": "GO", "valueFrom": {"configMapKeyRef": reference}}]
        pod = await place.pod(spec={"containers": [{"name": "main", "image": "one", "env": env}]})
        (status,) = pod["status"]["containerStatuses"]
        assert status["state"] == {"waiting": {"reason": "CreateContainerConfigError"}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "keys"}, "data": {"go": "true"}}
        await place.api.create(CONFIG_MAP, "shop", encode(body))
        await place.rest()
        (status,) = (await place.get(POD, "web"))["status"]["containerStatuses"]
        assert "running" in status["state"]

    play(story)


def test_a_lost_node(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        await place.pod()
        place.cluster.lose_node("node-1")
        await place.rest()
        lost = await place.get(POD, "web")
        assert "deletionTimestamp" in meta(lost)
        assert condition(lost, "Ready") == "False"
        assert condition(await place.get(NODE, "node-1"), "Ready") == "Unknown"
        assert (await place.pod("other"))["spec"]["nodeName"] == "node-2"
        place.cluster.return_node("node-1")
        await place.rest()
        assert not await place.exists(POD, "web")
        assert condition(await place.get(NODE, "node-1"), "Ready") == "True"

    play(story)


def test_a_node_that_is_back_in_time(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        await place.pod()
        place.cluster.lose_node("node-1")
        await place.clock.sleep(2)
        assert condition(await place.get(POD, "web"), "Ready") == "False"
        place.cluster.return_node("node-1")
        await place.rest()
        assert condition(await place.get(POD, "web"), "Ready") == "True"

    play(story)


def test_a_node_that_is_removed(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        await place.pod()
        place.cluster.lose_node("node-1")
        await place.delete(NODE, "node-1")
        await place.rest()
        assert not await place.exists(POD, "web")

    play(story)


def test_a_pod_waits_for_its_claim(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        pod = await place.pod(spec={"volumes": [volume]})
        assert condition(pod, "PodScheduled") == "False"
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await place.create(CLAIM, {"metadata": {"name": "data"}, "spec": spec})
        await place.rest()
        assert (await place.get(CLAIM, "data"))["status"]["phase"] == "Bound"
        assert condition(await place.get(POD, "web"), "Ready") == "True"

    play(story)


def test_a_full_cluster(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        for name in ("node-2", "node-3"):
            await place.patch(NODE, name, {"spec": {"unschedulable": True}})
        await place.patch(NODE, "node-1", {"status": {"allocatable": {"pods": "1"}}}, subresource="status")
        await place.pod("one")
        assert condition(await place.pod("two"), "PodScheduled") == "False"
        await place.delete(POD, "one")
        await place.rest()
        assert (await place.get(POD, "two"))["spec"]["nodeName"] == "node-1"

    play(story)


def pinned(node: str, **more: Any) -> Json:
    """A pod spec that demands one node."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return {"containers": [{"name": "main", "image": "nginx:1"}], "affinity": affinity, **more}


def test_a_pod_that_demands_a_node(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        assert (await place.pod("third", spec=pinned("node-3")))["spec"]["nodeName"] == "node-3"
        waiting = await place.pod("fourth", spec=pinned("node-4"))
        assert "nodeName" not in waiting["spec"]
        (scheduled,) = (one for one in waiting["status"]["conditions"] if one["type"] == "PodScheduled")
        assert scheduled["message"] == "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."

    play(story)


def test_a_cordoned_node(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        await place.patch(NODE, "node-1", {"spec": {"unschedulable": True}})
        await place.rest()
        (taint,) = (await place.get(NODE, "node-1"))["spec"]["taints"]
        assert (taint["key"], taint["effect"]) == ("node.kubernetes.io/unschedulable", "NoSchedule")
        assert "nodeName" not in (await place.pod("plain", spec=pinned("node-1")))["spec"]
        tolerations = [{"key": taint["key"], "operator": "Exists", "effect": "NoSchedule"}]
        daemon = await place.pod("daemon", spec=pinned("node-1", tolerations=tolerations))
        assert daemon["spec"]["nodeName"] == "node-1"
        await place.patch(NODE, "node-1", {"spec": {"unschedulable": False}})
        await place.rest()
        assert "taints" not in (await place.get(NODE, "node-1"))["spec"]
        assert (await place.get(POD, "plain"))["spec"]["nodeName"] == "node-1"

    play(story)


def test_who_does_not_tolerate_a_taint_is_evicted(play: Callable[[Story], None]) -> None:
    async def story(place: Place) -> None:
        tolerations = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}]
        await place.pod("daemon", spec=pinned("node-1", tolerations=tolerations))
        place.cluster.lose_node("node-1")
        await place.rest()
        lost = await place.get(POD, "daemon")
        assert "deletionTimestamp" not in meta(lost)
        assert condition(lost, "Ready") == "False"
        place.cluster.return_node("node-1")
        await place.rest()
        await place.patch(NODE, "node-1", {"spec": {"taints": [{"key": "mine", "effect": "NoExecute"}]}})
        await place.rest()
        assert not await place.exists(POD, "daemon")

    play(story)
