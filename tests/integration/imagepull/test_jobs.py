"""ImagePullJobs as users run them: statuses, printed columns, choices of nodes, failures (imagepull.md §5, §8)."""

from typing import Any

from tests.integration.imagepull.conftest import PullSpace
from tests.support.fake_agents import FAIL

Json = dict[str, Any]


def job(image: str, name: str = "job", version: str = "v1beta1", **spec: object) -> Json:
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "ImagePullJob",
        "metadata": {"name": name},
        "spec": {"image": image, **spec},
    }


def test_all_nodes_pull_and_the_job_completes(space: PullSpace):
    space.apply(job("docker.io/library/nginx:all", parallelism=2))
    status = space.done(desired=4, succeeded=4, failed=0, active=0, message="job has completed")
    assert status["startTime"] <= status["completionTime"]
    header, line = space.kubectl("get", "imagepulljob").splitlines()
    assert header.split() == ["TOTAL", "ACTIVE", "SUCCEED", "FAILED", "AGE"] or header.split() == [
        "NAME", "TOTAL", "ACTIVE", "SUCCEED", "FAILED", "AGE"
    ]  # fmt: skip
    assert line.split()[:5] == ["job", "4", "0", "4", "0"]
    alpha = space.kubectl("get", "imagepulljobs.v1alpha1.apps.kruise.io").splitlines()
    assert alpha[0].split()[-1] == "MESSAGE"
    assert alpha[1].endswith("job has completed")
    tag = space.tags(space.nodes[0])["nginx:all"]
    assert tag["ownerReferences"][0]["name"] == "job"
    assert (tag["imagePullPolicy"], tag["pullPolicy"]["timeoutSeconds"]) == ("IfNotPresent", 600)
    assert space.seen("ImagePullJob", "job")["metadata"].get("finalizers", []) == []


def test_a_node_that_fails_is_named(space: PullSpace):
    space.agents.answers[space.nodes[1], "nginx:broken"] = FAIL
    space.apply(job("nginx:broken", parallelism=4))
    status = space.done(succeeded=3, failed=1, message="job has completed")
    assert status["failedNodes"] == [space.nodes[1]]
