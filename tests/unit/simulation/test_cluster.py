"""The simulated cluster: what users see of scheduler, kubelets, nodes and claims."""

from collections.abc import Callable
from typing import Any

import pytest

from flotilla_common.api.resources import CLAIM, CONFIG_MAP, NODE, POD
from flotilla_common.control.plan import Json
from tests.simulation.cluster.kubelet import COMPLETE_ANNOTATION, EXITS_ANNOTATION, STOP_ANNOTATION
from tests.simulation.contract.apiserver.harness import STRATEGIC, encode, meta
from tests.unit.simulation.cluster_harness import ClusterHarness, Story, condition, play_in_a_cluster


@pytest.fixture
def play() -> Callable[[Story], None]:
    return play_in_a_cluster


def test_a_pod_starts(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        pods = [await cluster.pod(name) for name in "abcd"]
        assert [pod["spec"]["nodeName"] for pod in pods] == ["node-1", "node-2", "node-3", "node-1"]
        assert {condition(pods[0], kind) for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")} == {
            "True"
        }
        assert len({pod["status"]["podIP"] for pod in pods}) == 4
        assert cluster.states("a") == [("", "", 0, "Pending"), ("nginx:1", "True", 0, "Running")]

    play(story)


def test_a_new_image_restarts_the_container(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        old = (await cluster.pod())["status"]["containerStatuses"][0]
        new = (await cluster.image("nginx:2"))["status"]["containerStatuses"][0]
        assert (new["image"], new["restartCount"]) == ("nginx:2", 1)
        assert old["imageID"] != new["imageID"]
        assert old["containerID"] != new["containerID"]
        assert cluster.states()[1:] == [
            ("nginx:1", "True", 0, "Running"),
            ("", "False", 0, "Running"),
            ("nginx:2", "True", 1, "Running"),
        ]

    play(story)


def test_readiness_follows_the_gates(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        pod = await cluster.pod(spec={"readinessGates": [{"conditionType": "Mine"}]})
        assert (condition(pod, "Ready"), condition(pod, "ContainersReady")) == ("False", "True")
        for status in ("True", "False"):
            mine = {"status": {"conditions": [{"type": "Mine", "status": status}]}}
            await cluster.patch(POD, "web", mine, STRATEGIC, "status")
            await cluster.rest()
            assert condition(await cluster.get(POD, "web"), "Ready") == status

    play(story)


def test_a_container_dies(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        await cluster.pod()
        cluster.cluster.crash_container("shop", "web", "main")
        await cluster.rest()
        assert cluster.states()[2:] == [("", "False", 0, "Running"), ("nginx:1", "True", 1, "Running")]

    play(story)


def test_an_image_that_cannot_be_pulled(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        cluster.cluster.broken_images.add("nginx:broken")
        await cluster.pod()
        assert condition(await cluster.image("nginx:broken"), "Ready") == "False"
        assert cluster.states()[-1] == ("", "False", 0, "Running")
        assert condition(await cluster.image("nginx:2"), "Ready") == "True"
        assert cluster.states()[-1] == ("nginx:2", "True", 1, "Running")
        pending = await cluster.pod("new", spec={"containers": [{"name": "main", "image": "nginx:broken"}]})
        assert pending["status"]["phase"] == "Pending"
        cluster.cluster.mend_image("nginx:broken")
        await cluster.rest()
        assert cluster.states("new")[-1] == ("nginx:broken", "True", 0, "Running")

    play(story)


def test_a_deleted_pod_ends(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        await cluster.pod()
        await cluster.delete(POD, "web")
        await cluster.rest()
        assert cluster.states()[-2:] == [("", "False", 0, "Succeeded"), ("", "gone", 0, "")]

    play(story)


@pytest.mark.parametrize(
    ("wanted", "grace", "seconds"),
    [("2.5", 30, 2.5), ("9", 4, 4), ("9", 0, 0)],
    ids=["takes its time", "is killed in the end", "is forced"],
)
def test_a_slow_end(play: Callable[[Story], None], wanted: str, grace: int, seconds: float) -> None:
    async def story(cluster: ClusterHarness) -> None:
        await cluster.pod(annotations={STOP_ANNOTATION: wanted})
        started = cluster.clock.monotonic()
        await cluster.delete(POD, "web", {"gracePeriodSeconds": grace})
        await cluster.rest()
        assert cluster.states()[-1][1] == "gone"
        assert cluster.history.versions[-1].at - started == pytest.approx(seconds, abs=0.02)

    play(story)


def test_a_pod_that_succeeds(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        pod = await cluster.pod(annotations={COMPLETE_ANNOTATION: ""})
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
    async def story(cluster: ClusterHarness) -> None:
        annotations = {EXITS_ANNOTATION: encode(exits).decode()}
        pod = await cluster.pod(annotations=annotations, spec={"restartPolicy": policy})
        assert pod["status"]["phase"] == phase
        assert [state for one in pod["status"]["containerStatuses"] for state in one["state"]] == states

    play(story)


def test_a_container_that_waits_for_a_key(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        reference = {"name": "keys", "key": "go"}
        env = [{"name": "GO", "valueFrom": {"configMapKeyRef": reference}}]
        pod = await cluster.pod(spec={"containers": [{"name": "main", "image": "one", "env": env}]})
        (status,) = pod["status"]["containerStatuses"]
        assert status["state"] == {"waiting": {"reason": "CreateContainerConfigError"}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "keys"}, "data": {"go": "true"}}
        await cluster.api.create(CONFIG_MAP, "shop", encode(body))
        await cluster.rest()
        (status,) = (await cluster.get(POD, "web"))["status"]["containerStatuses"]
        assert "running" in status["state"]

    play(story)


def test_a_lost_node(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        await cluster.pod()
        cluster.cluster.lose_node("node-1")
        await cluster.rest()
        lost = await cluster.get(POD, "web")
        assert "deletionTimestamp" in meta(lost)
        assert condition(lost, "Ready") == "False"
        assert condition(await cluster.get(NODE, "node-1"), "Ready") == "Unknown"
        assert (await cluster.pod("other"))["spec"]["nodeName"] == "node-2"
        cluster.cluster.return_node("node-1")
        await cluster.rest()
        assert not await cluster.exists(POD, "web")
        assert condition(await cluster.get(NODE, "node-1"), "Ready") == "True"

    play(story)


def test_a_node_that_is_back_in_time(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        await cluster.pod()
        cluster.cluster.lose_node("node-1")
        await cluster.clock.sleep(2)
        assert condition(await cluster.get(POD, "web"), "Ready") == "False"
        cluster.cluster.return_node("node-1")
        await cluster.rest()
        assert condition(await cluster.get(POD, "web"), "Ready") == "True"

    play(story)


def test_a_node_that_is_removed(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        await cluster.pod()
        cluster.cluster.lose_node("node-1")
        await cluster.delete(NODE, "node-1")
        await cluster.rest()
        assert not await cluster.exists(POD, "web")

    play(story)


def test_a_pod_waits_for_its_claim(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        pod = await cluster.pod(spec={"volumes": [volume]})
        assert condition(pod, "PodScheduled") == "False"
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await cluster.create(CLAIM, {"metadata": {"name": "data"}, "spec": spec})
        await cluster.rest()
        assert (await cluster.get(CLAIM, "data"))["status"]["phase"] == "Bound"
        assert condition(await cluster.get(POD, "web"), "Ready") == "True"

    play(story)


def test_a_full_cluster(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        for name in ("node-2", "node-3"):
            await cluster.patch(NODE, name, {"spec": {"unschedulable": True}})
        await cluster.patch(NODE, "node-1", {"status": {"allocatable": {"pods": "1"}}}, subresource="status")
        await cluster.pod("one")
        assert condition(await cluster.pod("two"), "PodScheduled") == "False"
        await cluster.delete(POD, "one")
        await cluster.rest()
        assert (await cluster.get(POD, "two"))["spec"]["nodeName"] == "node-1"

    play(story)


def pinned(node: str, **more: Any) -> Json:
    """Return a pod spec that requires one node."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return {"containers": [{"name": "main", "image": "nginx:1"}], "affinity": affinity, **more}


def test_a_pod_that_demands_a_node(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        assert (await cluster.pod("third", spec=pinned("node-3")))["spec"]["nodeName"] == "node-3"
        waiting = await cluster.pod("fourth", spec=pinned("node-4"))
        assert "nodeName" not in waiting["spec"]
        (scheduled,) = (one for one in waiting["status"]["conditions"] if one["type"] == "PodScheduled")
        assert scheduled["message"] == "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."

    play(story)


def test_a_cordoned_node(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        await cluster.patch(NODE, "node-1", {"spec": {"unschedulable": True}})
        await cluster.rest()
        (taint,) = (await cluster.get(NODE, "node-1"))["spec"]["taints"]
        assert (taint["key"], taint["effect"]) == ("node.kubernetes.io/unschedulable", "NoSchedule")
        assert "nodeName" not in (await cluster.pod("plain", spec=pinned("node-1")))["spec"]
        tolerations = [{"key": taint["key"], "operator": "Exists", "effect": "NoSchedule"}]
        daemon = await cluster.pod("daemon", spec=pinned("node-1", tolerations=tolerations))
        assert daemon["spec"]["nodeName"] == "node-1"
        await cluster.patch(NODE, "node-1", {"spec": {"unschedulable": False}})
        await cluster.rest()
        assert "taints" not in (await cluster.get(NODE, "node-1"))["spec"]
        assert (await cluster.get(POD, "plain"))["spec"]["nodeName"] == "node-1"

    play(story)


def test_who_does_not_tolerate_a_taint_is_evicted(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        tolerations = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}]
        await cluster.pod("daemon", spec=pinned("node-1", tolerations=tolerations))
        cluster.cluster.lose_node("node-1")
        await cluster.rest()
        lost = await cluster.get(POD, "daemon")
        assert "deletionTimestamp" not in meta(lost)
        assert condition(lost, "Ready") == "False"
        cluster.cluster.return_node("node-1")
        await cluster.rest()
        await cluster.patch(NODE, "node-1", {"spec": {"taints": [{"key": "mine", "effect": "NoExecute"}]}})
        await cluster.rest()
        assert not await cluster.exists(POD, "daemon")

    play(story)
