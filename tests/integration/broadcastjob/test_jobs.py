"""BroadcastJobs as users run them (broadcastjob.md §4, §5, §8).

Covers failed pods, deadlines, ends and pauses.
"""

from tests.support.broadcast import COMPLETES, NAME, begun, broadcastjob, end, job_status, pods_of, reached, running
from tests.support.daemons import node_of
from tests.support.workspace import Workspace, condition, moment
from tests.testkit.documents import Json


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


def test_a_deadline(space: Workspace):
    """Row 21."""
    space.apply(broadcastjob(completionPolicy={"type": "Always", "activeDeadlineSeconds": 2}))
    begun(space, 3)
    status = reached(space, phase="failed", desired=3, active=0, succeeded=0, failed=3)
    said = f"Job {space.name}/{NAME} was active longer than specified deadline"
    assert ended(status, "Failed") == said
    assert (moment(status["completionTime"]) - moment(status["startTime"])).total_seconds() >= 2
    space.event("DeadlineExceeded", f"{said}: 0 pods succeeded, 3 pods failed")
    space.until(lambda: not space.pods)


def test_it_goes_after_its_time(space: Workspace):
    """Rows 23 and 24: pods follow by garbage collection."""
    space.apply(broadcastjob(template=COMPLETES, completionPolicy={"ttlSecondsAfterFinished": 1}))
    # The end is a moment that a busy machine may see only in the record.
    space.until(
        lambda: any(
            job.object.get("status", {}).get("phase") == "completed" for job in space.history(0, space.workload.kind)
        )
    )
    space.until(lambda: not space.clone(NAME) and not space.pods)


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
