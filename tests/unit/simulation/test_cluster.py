"""The simulated cluster: what users see of scheduler, kubelets, nodes and claims."""

from collections.abc import Callable
from typing import Any

import pytest

from flotilla_common.api.resources import CLAIM, CONFIG_MAP, NODE, POD
from flotilla_common.control.plan import Json
from tests.simulation.cluster.kubelet import COMPLETE_ANNOTATION, EXITS_ANNOTATION, STOP_ANNOTATION
from tests.simulation.contract.apiserver.harness import STRATEGIC, encode, meta
from tests.unit.simulation.place import Place, Story, condition, play_in_a_cluster


@pytest.fixture
def play() -> Callable[[Story], None]:
    return play_in_a_cluster


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
