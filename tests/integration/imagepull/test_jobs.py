"""ImagePullJobs as users run them: statuses, printed columns, choices of nodes, failures (imagepull.md §5, §8)."""

from collections import Counter
from pathlib import Path

from tests.integration.imagepull.conftest import PullSpace
from tests.support.fake_agents import FAIL, HANG
from tests.support.python_client import python_client, watched
from tests.testkit.documents import Json


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


async def test_a_job_by_the_dynamic_client_of_python(space: PullSpace, tmp_path: Path):
    async with python_client(space.cluster, tmp_path) as client:
        jobs = await client.resources.get(api_version="apps.kruise.io/v1beta1", kind="ImagePullJob")
        await jobs.create(body=job("nginx:python", parallelism=4), namespace=space.name)
        done = await watched(jobs, space.name, "job", lambda status: "completionTime" in status)
        assert (done["status"]["desired"], done["status"]["succeeded"]) == (4, 4)
        nodes = await client.resources.get(api_version="apps.kruise.io/v1beta1", kind="NodeImage")
        node = await nodes.get(name=space.nodes[0])
        assert "python" in {tag.tag for tag in node.spec.images.nginx.tags}
        await jobs.delete(name="job", namespace=space.name)
        space.until(lambda: not space.seen("ImagePullJob", "job"))


def test_a_node_that_fails_is_named(space: PullSpace):
    space.agents.answers[space.nodes[1], "nginx:broken"] = FAIL
    space.apply(job("nginx:broken", parallelism=4))
    status = space.done(succeeded=3, failed=1, message="job has completed")
    assert status["failedNodes"] == [space.nodes[1]]


def test_names_and_labels_choose_nodes(space: PullSpace):
    first, second = space.nodes[:2]
    space.apply(job("nginx:named", "named", selector={"names": [first, "nope"]}))
    space.done("named", desired=1, succeeded=1)
    space.kubectl("label", "node", second, f"pool={space.name}")
    space.apply(job("nginx:labelled", "labelled", selector={"matchLabels": {"pool": space.name}}))
    space.done("labelled", desired=1, succeeded=1)
    assert "nginx:labelled" in space.tags(second)
    assert "nginx:labelled" not in space.tags(first)


def test_a_job_that_never_ends_serves_a_node_that_comes_later(space: PullSpace):
    pool = f"late-{space.name}"[:60]
    selector = {"matchLabels": {"pool": pool}}
    space.apply(job("nginx:never", selector=selector, completionPolicy={"type": "Never"}))
    space.done(desired=0, message="job is running, no progress")
    space.kubectl("label", "--overwrite", "node", space.nodes[2], f"pool={pool}")
    space.done(desired=1, succeeded=1, message="job is running, progress 100.0%")
    assert "completionTime" not in space.job()
    assert space.seen("NodeImage", space.nodes[2])["metadata"]["labels"]["pool"] == pool


def test_a_job_without_nodes_is_over_at_once(space: PullSpace):
    space.apply(job("nginx:none", selector={"matchLabels": {"pool": "nowhere"}}))
    status = space.done(desired=0, message="job has completed")
    assert "completionTime" in status


def test_pods_choose_nodes(space: PullSpace):
    pods = [("a", space.nodes[0]), ("b", space.nodes[0]), ("c", space.nodes[2])]
    for name, node in pods:
        containers = [{"name": "c", "image": "i"}]
        meta = {"name": name, "labels": {"app": "web"}}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": meta,
            "spec": {"nodeName": node, "containers": containers},
        }
        space.apply(pod)
    space.until(lambda: len(space.pods) == 3)
    space.apply(job("nginx:pods", podSelector={"matchLabels": {"app": "web"}}, parallelism=5))
    space.done(desired=2, succeeded=2)
    assert "nginx:pods" not in space.tags(space.nodes[1])


def test_paused_and_resumed(space: PullSpace):
    space.apply(job("nginx:paused", parallelism=0))
    space.done(desired=4, active=0, succeeded=0, message="job is running, progress 0.0%")
    space.patch({"spec": {"parallelism": "3"}}, "job", "imagepulljob")
    space.done(succeeded=4, message="job has completed")


def test_two_jobs_for_one_image(space: PullSpace):
    node = space.nodes[0]
    space.apply(job("nginx:shared", "one", selector={"names": [node]}))
    space.done("one", succeeded=1, message="job has completed")
    before = space.job("one")
    space.apply(job("nginx:shared", "two", selector={"names": [node]}))
    space.done("two", succeeded=1, message="job has completed")
    tag = space.tags(node)["nginx:shared"]
    assert (tag["version"], [owner["name"] for owner in tag["ownerReferences"]]) == (1, ["one", "two"])
    assert space.job("one") == before
    pulls = len([pull for pull in space.agents.pulls if pull[1] == "nginx:shared"])
    space.kubectl("delete", "imagepulljob", "one")
    space.until(lambda: [owner["name"] for owner in space.tags(node)["nginx:shared"]["ownerReferences"]] == ["two"])
    assert space.tags(node)["nginx:shared"]["version"] == 1
    space.kubectl("delete", "imagepulljob", "two")
    space.until(lambda: "nginx:shared" not in space.tags(node))
    assert len([pull for pull in space.agents.pulls if pull[1] == "nginx:shared"]) == pulls


def test_a_deadline_ends_a_job_that_waits_for_a_node(space: PullSpace):
    for node in space.nodes[:2]:
        space.agents.answers[node, "nginx:slow"] = HANG
    limits = {"pullPolicy": {"timeoutSeconds": 3}, "completionPolicy": {"activeDeadlineSeconds": 3}}
    space.apply(job("nginx:slow", parallelism=1, selector={"names": space.nodes[:2]}, **limits))
    space.done(active=1)
    status = space.done(message="job exceeds activeDeadlineSeconds", failed=2, active=0, succeeded=0)
    assert status["failedNodes"] == space.nodes[:2]
    assert "nginx:slow" not in space.tags(space.nodes[1])


def test_a_completed_job_goes_after_its_time(space: PullSpace):
    space.apply(job("nginx:ttl", parallelism=4, completionPolicy={"ttlSecondsAfterFinished": 0}))
    space.until(lambda: not space.seen("ImagePullJob", "job") and bool(space.agents.pulls))
    space.until(lambda: all("nginx:ttl" not in space.tags(node) for node in space.nodes))


def test_a_job_costs_one_write_per_node_beside_the_reports(space: PullSpace):
    since = space.now()
    space.apply(job("nginx:cheap", parallelism=4))
    space.done(succeeded=4, message="job has completed")
    of_nodes = [event.object for event in space.history(since, "NodeImage") if event.type == "MODIFIED"]
    specs = Counter(name for name, _ in {(one["metadata"]["name"], one["metadata"]["generation"]) for one in of_nodes})
    assert specs == dict.fromkeys(space.nodes, 1), "one change of the spec per node"
    assert len(of_nodes) <= 3 * len(space.nodes), "beside it Pulling and Succeeded"
    assert len(space.history(since, "ImagePullJob")) <= 8


def test_explain_and_get(space: PullSpace):
    space.agents.answers[space.nodes[1], "nginx:shown"] = FAIL
    space.apply(job("nginx:shown", parallelism=4))
    space.done(failed=1, succeeded=3)
    shown = space.flotilla("get", "imagepulljob", "job")
    assert "nginx:shown: job has completed" in shown
    assert space.nodes[1] in shown
    assert "nginx:shown" in space.flotilla("get", "nodeimage", space.nodes[0])
    explained = space.flotilla("explain", "imagepulljob", "job")
    assert "3 of 4 nodes have the image" in explained
