"""The simulated cluster: pods that end and restart, ephemeral containers, and Jobs."""

from collections.abc import Callable
from typing import Any

import pytest

from flotilla_common.api.resources import JOB, POD
from flotilla_common.control.plan import Json
from tests.simulation.cluster.kubelet import EXITS_ANNOTATION
from tests.simulation.contract.apiserver.harness import STRATEGIC, encode
from tests.unit.simulation.cluster_harness import ClusterHarness, Story, condition, play_in_a_cluster


@pytest.fixture
def play() -> Callable[[Story], None]:
    return play_in_a_cluster


def test_a_container_that_ends_otherwise_the_next_time(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        annotations = {EXITS_ANNOTATION: encode({"main": [1, 0]}).decode()}
        pod = await cluster.pod(annotations=annotations, spec={"restartPolicy": "OnFailure"})
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
    async def story(cluster: ClusterHarness) -> None:
        cluster.cluster.broken_images.add("nginx:broken")
        before = await cluster.pod()
        patch = {"spec": {"ephemeralContainers": [{"name": "dbg", "image": "busybox:1"} | container]}}
        await cluster.patch(POD, "web", patch, STRATEGIC, "ephemeralcontainers")
        await cluster.rest()
        pod = await cluster.get(POD, "web")
        (status,) = pod["status"]["ephemeralContainerStatuses"]
        assert {name: one.get("exitCode") for name, one in status["state"].items()} == state
        assert pod["status"]["containerStatuses"] == before["status"]["containerStatuses"]
        assert condition(pod, "Ready") == "True"

    play(story)


def test_an_image_of_an_ephemeral_container_that_can_be_pulled_again(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        cluster.cluster.broken_images.add("busybox:1")
        await cluster.pod()
        patch = {"spec": {"ephemeralContainers": [{"name": "dbg", "image": "busybox:1"}]}}
        await cluster.patch(POD, "web", patch, STRATEGIC, "ephemeralcontainers")
        await cluster.rest()
        cluster.cluster.mend_image("busybox:1")
        await cluster.rest()
        (status,) = (await cluster.get(POD, "web"))["status"]["ephemeralContainerStatuses"]
        assert "running" in status["state"]

    play(story)


def once(name: str, exits: object, **spec: Any) -> Json:
    """Return a Job whose pod ends with these exit codes."""
    metadata = {"annotations": {EXITS_ANNOTATION: encode({"main": exits}).decode()}}
    pods = {"containers": [{"name": "main", "image": "nginx:1"}], "restartPolicy": "Never"}
    return {"metadata": {"name": name}, "spec": {"template": {"metadata": metadata, "spec": pods}, **spec}}


@pytest.mark.parametrize(
    ("code", "limit", "end", "pods"),
    [(0, 6, "Complete", 1), (1, 0, "Failed", 1), (1, 1, "Failed", 2)],
    ids=["completed", "failed", "failed twice"],
)
def test_a_job(code: int, limit: int, end: str, pods: int, play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        await cluster.create(JOB, once("job", code, backoffLimit=limit))
        await cluster.rest()
        status = (await cluster.get(JOB, "job"))["status"]
        assert [one["type"] for one in status["conditions"]] == [end]
        assert (status["active"], status["succeeded"] + status["failed"]) == (0, pods)
        assert len(await cluster.names(POD)) == pods

    play(story)


def test_a_job_that_is_over_for_a_while(play: Callable[[Story], None]) -> None:
    async def story(cluster: ClusterHarness) -> None:
        await cluster.create(JOB, once("job", 0, ttlSecondsAfterFinished=2))
        await cluster.rest()
        assert not await cluster.exists(JOB, "job")
        assert not await cluster.names(POD)

    play(story)
