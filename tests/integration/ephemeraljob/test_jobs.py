"""EphemeralJobs as users run them: injection, counts, and ends of jobs (ephemeraljob.md §5 to §8, §11).

The apiserver accepts the containers; a test sets their statuses.
"""

import json

from flotilla_common.api.kinds.ephemeraljob.types import FINALIZER, JOB_UID_ENV
from tests.support.ephemeral import (
    NAME,
    begun,
    container,
    end,
    ephemeraljob,
    injected,
    owners,
    reached,
    runs,
    say,
    started,
)
from tests.support.workspace import Workspace, identity, restarts
from tests.testkit.documents import Json


def conditions(status: Json) -> dict[str, str]:
    """Return the reasons of the conditions, by type."""
    assert {one["status"] for one in status["conditions"]} == {"True"}
    return {one["type"]: one["reason"] for one in status["conditions"]}


def test_one_pod_after_the_other(space: Workspace):
    """Rows 1 and 3: in the order of their age, then of their names; nothing else in the pods changes."""
    started(space, "p1", "p2", "p3", "p4")
    before = {name: (identity(pod), restarts(pod)) for name, pod in space.pods.items()}
    space.apply(ephemeraljob(replicas=3))
    for number, pod in enumerate(("p1", "p2", "p3")):
        begun(space, *("p1", "p2", "p3")[: number + 1])
        reached(space, phase="Unknown", match=3, succeeded=number)
        runs(space, pod)
        reached(space, phase="Running", running=1, succeeded=number)
        end(space, pod)
    status = reached(space, phase="Succeeded", match=3, running=0, succeeded=3, failed=0, waiting=0)
    assert conditions(status) == {"Initialized": "Initialized", "JobSucceeded": "JobSucceeded"}
    assert status["conditions"][-1]["message"] == "job success to run all tasks"
    assert status["startTime"] <= status["completionTime"]
    assert {name: (identity(pod), restarts(pod)) for name, pod in space.pods.items()} == before
    (found,) = space.pod("p1")["spec"]["ephemeralContainers"]
    assert found["env"] == [{"name": JOB_UID_ENV, "value": space.clone(NAME)["metadata"]["uid"]}]
    assert found["command"] == ["true"]
    assert "ephemeralContainers" not in space.pod("p4")["spec"]
    header, line = space.kubectl("get", "ejob").splitlines()
    assert header.split() == ["NAME", "STATUS", "MATCH", "SUCCEED", "FAILED", "RUNNING", "WAITING", "AGE"]
    assert line.split()[:7] == [NAME, "Succeeded", "3", "3", "0", "0", "0"]


def test_many_at_once_and_more_later(space: Workspace):
    """Rows 2, 17 and 25: raised replicas take more pods; a pod that goes leaves its place to the next."""
    started(space, "p1", "p2", "p3", "p4")
    space.apply(ephemeraljob(replicas=2, parallelism=5))
    begun(space, "p1", "p2")
    runs(space, "p1", "p2")
    reached(space, phase="Running", match=2, running=2)
    space.patch({"spec": {"replicas": 3}}, NAME)
    begun(space, "p1", "p2", "p3")
    space.kubectl("delete", "pod", "p1")
    begun(space, "p2", "p3", "p4")
    end(space, "p2", "p3", "p4")
    reached(space, phase="Succeeded", match=3, succeeded=3)


def test_containers_that_do_not_start(space: Workspace):
    """Rows 5 and 22: a command that does not exist fails; an image that cannot be pulled is waited for."""
    started(space, "p1", "p2")
    space.apply(ephemeraljob(parallelism=2))
    begun(space, "p1", "p2")
    for pod in ("p1", "p2"):
        say(space, pod, {"waiting": {"reason": "ImagePullBackOff"}})
    reached(space, phase="Waiting", match=2, waiting=2)
    say(space, "p1", {"waiting": {"reason": "RunContainerError"}})
    reached(space, phase="Unknown", waiting=1, failed=1)
    space.patch({"spec": {"activeDeadlineSeconds": 1}}, NAME)
    status = reached(space, phase="Failed", waiting=1, failed=1)
    assert conditions(status)["JobFailed"] == "DeadlineExceeded"


def test_paused_and_without_parallelism(space: Workspace):
    """Rows 4, 14 and 15."""
    started(space, "p1", "p2")
    space.apply(ephemeraljob(paused=True))
    assert "startTime" in reached(space, phase="Paused", match=2)
    assert injected(space) == []
    space.patch({"spec": {"paused": False, "parallelism": 0}}, NAME)
    reached(space, phase="Unknown", match=2)
    assert injected(space) == []
    space.patch({"spec": {"parallelism": 1}}, NAME)
    begun(space, "p1")
    runs(space, "p1")
    space.patch({"spec": {"paused": True}}, NAME)
    reached(space, phase="Paused", running=1)
    end(space, "p1")
    reached(space, phase="Paused", running=0, succeeded=1)
    assert injected(space) == ["p1"]
    space.patch({"spec": {"paused": False}}, NAME)
    begun(space, "p1", "p2")


def test_names_that_are_taken(space: Workspace):
    """Rows 10, 11 and 21: a name stays taken; two names can coexist in one pod."""
    started(space, "p1", "p2")
    taken = container(NAME)
    body = json.dumps({"spec": {"ephemeralContainers": [taken]}})
    space.kubectl("patch", "pod", "p1", "--subresource=ephemeralcontainers", "--type=strategic", "-p", body)
    space.apply(ephemeraljob(replicas=1))
    begun(space, "p2")
    reached(space, match=1)
    space.apply(ephemeraljob("trace", replicas=1))
    begun(space, "p1", name="trace")
    assert {one["name"] for one in space.pod("p1")["spec"]["ephemeralContainers"]} == {NAME, "trace"}
    space.kubectl("delete", "ejob", NAME)
    space.apply(ephemeraljob())
    assert conditions(reached(space, phase="Waiting", match=0))["MatchedEmpty"] == "MatchEmpty"
    assert len(owners(space.pod("p2"), NAME)) == 1


def test_deleted_at_work_and_after_its_end(space: Workspace):
    """Rows 18 and 20: containers stay where they are."""
    started(space, "p1")
    space.apply(ephemeraljob())
    begun(space, "p1")
    runs(space, "p1")
    reached(space, running=1)
    assert space.clone(NAME)["metadata"]["finalizers"] == [FINALIZER]
    space.kubectl("delete", "ejob", NAME)
    space.until(lambda: not space.clone(NAME))
    space.apply(ephemeraljob("brief", ttlSecondsAfterFinished=0))
    begun(space, "p1", name="brief")
    end(space, "p1", name="brief")
    space.until(lambda: not space.clone("brief"))
    assert {one["name"] for one in space.pod("p1")["spec"]["ephemeralContainers"]} == {NAME, "brief"}


def test_it_goes_with_its_namespace(space: Workspace):
    started(space, "p1")
    space.apply(ephemeraljob())
    reached(space, match=1)
    space.cluster.kubectl("delete", "namespace", space.name, "--wait=false")
    space.until(lambda: not space.clone(NAME) and not space.pods)
