"""BroadcastJobs as users run them (broadcastjob.md §4, §5, §8).

Covers parallelism, failed pods, deadlines, ends and pauses.
"""

import json

import pytest

from tests.support.broadcast import (
    COMPLETES,
    NAME,
    begun,
    broadcastjob,
    end,
    is_active,
    job_status,
    numbers,
    pods_of,
    reached,
    running,
)
from tests.support.daemons import node_of
from tests.support.workspace import Workspace, condition, image, moment
from tests.testkit.documents import Json

ENDS = {"activeDeadlineSeconds": 2}


def ended(status: Json, kind: str) -> str:
    """Return the message of the only condition, by which a job ended."""
    (found,) = status["conditions"]
    assert (found["type"], found["reason"], found["status"]) == (kind, kind, "True")
    assert moment(status["startTime"]) <= moment(status["completionTime"])
    return found["message"]


def test_it_completes_and_what_it_leaves(space: Workspace):
    """Rows 1 and 28: pods carry what tools look for, stay when all is over, and are not made again."""
    space.apply(broadcastjob(template=COMPLETES))
    status = reached(space, phase="completed", desired=3, active=0, succeeded=3, failed=0)
    assert ended(status, "Complete") == "Job completed, 3 pods succeeded, 0 pods failed"
    uid, pods = space.clone(NAME)["metadata"]["uid"], pods_of(space)
    for pod in pods:
        meta = pod["metadata"]
        assert {"broadcastjob-name": NAME, "broadcastjob-controller-uid": uid}.items() <= meta["labels"].items()
        assert meta["generateName"] == f"{NAME}-"
        (owner,) = meta["ownerReferences"]
        assert (owner["apiVersion"], owner["kind"], owner["uid"]) == ("apps.kruise.io/v1beta1", "BroadcastJob", uid)
        assert owner["controller"]
        assert owner["blockOwnerDeletion"]
        assert condition(pod, "KruisePodReady")["status"] == "True"
        space.event("SuccessfulCreate", f"Created pod: {meta['name']}")
    space.event("JobComplete", f"Job {space.name}/{NAME} is completed, 3 pods succeeded, 0 pods failed")
    mark = space.now()
    space.kubectl("delete", "pod", pods[0]["metadata"]["name"])
    space.kubectl("annotate", "bcj", NAME, "looked=at")
    space.until(lambda: len(space.pods) == 2 and "looked" in space.clone(NAME)["metadata"]["annotations"])
    space.catch_up()
    assert "ADDED" not in {event.type for event in space.history(mark)}
    assert job_status(space) == status


def test_a_share_at_a_time(space: Workspace):
    """Row 3: half of three nodes are two."""
    space.apply(broadcastjob(parallelism="50%"))
    assert numbers(job_status(space)) == (3, 2, 0, 0) or begun(space, 2)
    reached(space, desired=3, active=2)
    end(space, begun(space, 2))
    end(space, begun(space, 1))
    reached(space, phase="completed", succeeded=3)
    for pods in space.moments():
        assert sum(map(is_active, pods.values())) <= 2


def test_a_parallelism_that_changes(space: Workspace):
    """Rows 5 and 6: nothing starts at 0; what runs is not stopped when it shrinks."""
    space.apply(broadcastjob(parallelism=0))
    reached(space, phase="running", desired=3, active=0)
    space.patch({"spec": {"parallelism": 2}}, NAME)
    before = begun(space, 2)
    space.patch({"spec": {"parallelism": 1}}, NAME)
    space.event("TooManyActivePods", "Number of active pods exceed parallelism limit")
    reached(space, desired=3, active=2)
    assert running(space) == before
    space.patch({"spec": {"parallelism": 3}}, NAME)
    assert len(begun(space, 3)) == 3


def test_one_failure_ends_all(space: Workspace):
    """Rows 13 and 14: what is killed counts as failed, and stays counted."""
    space.apply(broadcastjob())
    first, second, third = begun(space, 3)
    end(space, [first])
    reached(space, succeeded=1)
    end(space, [second], "Failed")
    status = reached(space, phase="failed", desired=3, active=0, succeeded=1, failed=2)
    found = "failure policy is FailurePolicyTypeFailFast and failed pod is found"
    assert ended(status, "Failed") == found
    space.until(lambda: not space.pod(third["metadata"]["name"]))
    space.event("failed pod is found", f"{found}: 1 pods succeeded, 1 pods failed")
    space.event("failed pod is found", f"{found}: 1 pods succeeded, 2 pods failed")
    space.event("SuccessfulDelete", f"Delete pod: {third['metadata']['name']}")
    assert len(pods_of(space)) == 2
    assert job_status(space) == status


def test_failures_that_are_put_up_with(space: Workspace):
    """Row 15."""
    space.apply(broadcastjob(parallelism=1, failurePolicy={"type": "Continue"}))
    for phase in ("Succeeded", "Failed", "Succeeded"):
        end(space, begun(space, 1), phase)
    status = reached(space, phase="completed", desired=3, active=0, succeeded=2, failed=1)
    assert ended(status, "Complete") == "Job completed, 2 pods succeeded, 1 pods failed"


def test_a_failure_that_pauses(space: Workspace):
    """Rows 16 and 17: until the failed pod is deleted, or the policy changed."""
    space.apply(broadcastjob(parallelism=1, failurePolicy={"type": "Pause"}))
    (pod,) = begun(space, 1)
    end(space, [pod], "Failed")
    reached(space, phase="paused", desired=3, active=0, failed=1)
    space.event("Paused", "job is paused, due to failed pod")
    space.kubectl("delete", "pod", pod["metadata"]["name"])
    space.event("Continue", "continue to process job")
    (again,) = begun(space, 1)
    assert not job_status(space).get("failed")
    end(space, [again], "Failed")
    reached(space, phase="paused", failed=1)
    space.patch({"spec": {"failurePolicy": {"type": "Continue"}}}, NAME)
    (other,) = begun(space, 1)
    assert node_of(other) != node_of(again)
    reached(space, phase="running", desired=3, active=1, failed=1)
    assert "paused" not in space.clone(NAME)["spec"] or not space.clone(NAME)["spec"]["paused"]


def test_paused_by_its_user(space: Workspace):
    """Rows 18 and 19: what runs may end, and is counted."""
    space.apply(broadcastjob(paused=True))
    assert "startTime" in reached(space, phase="paused", desired=3, active=0)
    assert not space.pods
    space.patch({"spec": {"paused": False, "parallelism": 1}}, NAME)
    space.event("Continue", "continue to process job")
    pods = begun(space, 1)
    space.patch({"spec": {"paused": True}}, NAME)
    reached(space, phase="paused", active=1)
    end(space, pods)
    reached(space, phase="paused", desired=3, active=0, succeeded=1)
    assert len(space.pods) == 1
    space.patch({"spec": {"paused": False}}, NAME)
    begun(space, 1)


def test_a_deadline(space: Workspace):
    """Row 21."""
    space.apply(broadcastjob(completionPolicy={"type": "Always"} | ENDS))
    begun(space, 3)
    status = reached(space, phase="failed", desired=3, active=0, succeeded=0, failed=3)
    said = f"Job {space.name}/{NAME} was active longer than specified deadline"
    assert ended(status, "Failed") == said
    assert (moment(status["completionTime"]) - moment(status["startTime"])).total_seconds() >= 2
    space.event("DeadlineExceeded", f"{said}: 0 pods succeeded, 3 pods failed")
    space.until(lambda: not space.pods)


@pytest.mark.parametrize("policy", [{}, ENDS], ids=["completed", "failed"])
def test_it_goes_after_its_time(space: Workspace, policy: Json):
    """Rows 23 and 24: pods follow by garbage collection."""
    kept, phase = {"ttlSecondsAfterFinished": 1}, "failed" if policy else "completed"
    space.apply(broadcastjob(template={} if policy else COMPLETES, completionPolicy=policy | kept))
    # The end is a moment that a busy machine may see only in the record.
    space.until(
        lambda: any(job.object.get("status", {}).get("phase") == phase for job in space.history(0, space.workload.kind))
    )
    space.until(lambda: not space.clone(NAME) and not space.pods)


def test_restarts_within_a_limit(space: Workspace):
    """Rows 31 and 32: a pod that restarts too often counts as failed, and is not stopped."""
    policy = {"type": "Continue", "restartLimit": 1}
    space.apply(broadcastjob(pod={"restartPolicy": "OnFailure"}, failurePolicy=policy))
    first, *others = begun(space, 3)
    restarted(space, first, 1)
    restarted(space, others[0], 2)
    reached(space, phase="running", desired=3, active=2, failed=1)
    end(space, [first, *others])
    reached(space, phase="completed", succeeded=3, failed=0)


def restarted(space: Workspace, pod: Json, count: int) -> None:
    """Report a container that was restarted this many times, as the kubelet does."""
    statuses = [pod["status"]["containerStatuses"][0] | {"restartCount": count}]
    body = json.dumps({"status": {"containerStatuses": statuses}})
    space.kubectl("patch", "pod", pod["metadata"]["name"], "--subresource=status", "--type=merge", "-p", body)


def test_nodes_that_do_not_fit(space: Workspace):
    """Rows 11, 12 and 33: a node counts as if it were empty; without any the job waits."""
    space.apply(broadcastjob("chosen", pod={"nodeSelector": {"kubernetes.io/hostname": "node-1"}}))
    assert [node_of(pod) for pod in begun(space, 1, "chosen")] == ["node-1"]
    reached(space, "chosen", desired=1, active=1)
    huge = [{"name": "main", "image": "busybox:1.36", "resources": {"requests": {"cpu": "9"}}}]
    space.apply(broadcastjob("huge", pod={"containers": huge}))
    reached(space, "huge", phase="running", desired=0, active=0)
    assert not pods_of(space, "huge")


def test_an_edited_template_is_for_later_pods(space: Workspace):
    """Rows 29 and 38."""
    space.apply(broadcastjob(parallelism=1))
    (first,) = begun(space, 1)
    space.set_image("busybox:1.37", NAME)
    end(space, [first])
    (second,) = begun(space, 1)
    assert [image(pod) for pod in (space.pod(first["metadata"]["name"]), second)] == ["busybox:1.36", "busybox:1.37"]
    end(space, [second])
    (third,) = begun(space, 1)
    space.kubectl("delete", "pod", first["metadata"]["name"])
    end(space, [third])
    (again,) = begun(space, 1)
    assert (node_of(again), image(again)) == (node_of(first), "busybox:1.37")


def test_a_quota(space: Workspace):
    """Row 37: refused creates do not count, are reported, and are retried."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}}
    space.apply(quota)
    space.until(lambda: "used" in space.read("quota", "few").get("status", {}))
    space.apply(broadcastjob())
    (message, *_) = space.warnings("FailedCreate")
    assert "exceeded quota: few" in message
    reached(space, phase="running", desired=3, active=1)
    space.patch({"spec": {"hard": {"pods": "9"}}}, "few", "quota")
    begun(space, 3)


def test_deleted_with_and_without_its_pods(space: Workspace):
    """Row 39: a job that is going makes no pods."""
    space.apply(broadcastjob(parallelism=1, pod={"terminationGracePeriodSeconds": 1}))
    (pod,) = begun(space, 1)
    space.set_finalizers(pod["metadata"]["name"], "example.com/held")
    space.kubectl("delete", "bcj", NAME, "--cascade=foreground", "--wait=false")
    space.until(lambda: "deletionTimestamp" in space.pod(pod["metadata"]["name"])["metadata"])
    space.patch({"spec": {"parallelism": 3}}, NAME)
    space.set_finalizers(pod["metadata"]["name"])
    space.until(lambda: not space.clone(NAME) and not space.pods)
    assert [event.type for event in space.history()].count("ADDED") == 1
    space.apply(broadcastjob())
    kept = {pod["metadata"]["name"] for pod in begun(space, 3)}
    space.kubectl("delete", "bcj", NAME, "--cascade=orphan")
    space.until(lambda: not space.clone(NAME))
    space.apply(broadcastjob())
    space.until(lambda: len(running(space)) == 6)
    reached(space, desired=3, active=3)
    assert kept < space.pods.keys()
