"""Injections that the apiserver refuses (ephemeraljob.md §6, §9): users see why, and the job continues once it can."""

from tests.support.ephemeral import NAME, begun, container, ephemeraljob, injected, job_status, reached, started
from tests.support.workspace import Workspace


def test_a_target_that_the_pod_does_not_have(space: Workspace):
    started(space, "p1", "p2")
    bad = container(NAME, targetContainerName="nope")
    space.apply(ephemeraljob(parallelism=2, containers=[bad]))
    refused = 'Pod "p1" is invalid: spec.ephemeralContainers[0].targetContainerName: Not found: "nope"'
    space.event("CreateFailed", f"failed to create ephemeral container in pod {space.name}/p1: {refused}")
    reached(space, phase="Unknown", match=2)
    assert "startTime" in job_status(space)
    assert injected(space) == []
    space.patch({"spec": {"template": {"ephemeralContainers": [container(NAME)]}}}, NAME)
    begun(space, "p1", "p2")


def test_one_write_for_each_pod(space: Workspace):
    started(space, "p1", "p2", "p3")
    before = {name: pod["metadata"]["generation"] for name, pod in space.pods.items()}
    space.apply(ephemeraljob(parallelism=3))
    begun(space, "p1", "p2", "p3")
    space.catch_up()
    assert {name: pod["metadata"]["generation"] - before[name] for name, pod in space.pods.items()} == {
        "p1": 1,
        "p2": 1,
        "p3": 1,
    }
