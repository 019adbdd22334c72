"""ImagePullJobs as users run them: statuses, printed columns, choices of nodes, failures (imagepull.md §5, §8)."""

from tests.integration.jobs.conftest import PullSpace
from tests.support.fake_agents import FAIL
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
    assert header.split() == ["NAME", "TOTAL", "ACTIVE", "SUCCEED", "FAILED", "AGE"]
    assert line.split()[:5] == ["job", "4", "0", "4", "0"]
    alpha = space.kubectl("get", "imagepulljobs.v1alpha1.apps.kruise.io").splitlines()
    assert alpha[0].split()[-1] == "MESSAGE"
    assert alpha[1].endswith("job has completed")
    tag = space.tags(space.nodes[0])["nginx:all"]
    assert tag["ownerReferences"][0]["name"] == "job"
    assert (tag["imagePullPolicy"], tag["pullPolicy"]["timeoutSeconds"]) == ("IfNotPresent", 600)
    assert space.seen("ImagePullJob", "job")["metadata"].get("finalizers", []) == []


def test_a_job_that_never_ends_serves_a_node_that_comes_later(space: PullSpace):
    pool = f"late-{space.name}"[:60]
    selector = {"matchLabels": {"pool": pool}}
    space.apply(job("nginx:never", selector=selector, completionPolicy={"type": "Never"}))
    space.done(desired=0, message="job is running, no progress")
    space.kubectl("label", "--overwrite", "node", space.nodes[2], f"pool={pool}")
    space.done(desired=1, succeeded=1, message="job is running, progress 100.0%")
    assert "completionTime" not in space.job()
    assert space.seen("NodeImage", space.nodes[2])["metadata"]["labels"]["pool"] == pool


def test_pods_choose_nodes(space: PullSpace):
    pods = [("a", space.nodes[0]), ("b", space.nodes[0]), ("c", space.nodes[2])]
    for name, node in pods:
        meta = {"name": name, "labels": {"app": "web"}}
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
        space.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    space.until(lambda: len(space.pods) == 3)
    space.apply(job("nginx:pods", podSelector={"matchLabels": {"app": "web"}}, parallelism=5))
    space.done(desired=2, succeeded=2)
    assert "nginx:pods" not in space.tags(space.nodes[1])


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


def test_what_a_job_costs_and_its_end(space: PullSpace):
    """Write each node's spec once, beside two reports; after its time the job goes, and its tags leave the nodes."""
    before = generations(space)
    since = space.now()
    space.apply(job("nginx:cheap", parallelism=4))
    space.done(succeeded=4, message="job has completed")
    assert generations(space) == {node: generation + 1 for node, generation in before.items()}
    assert len([event for event in space.history(since, "NodeImage") if event.type == "MODIFIED"]) <= 3 * len(before)
    assert len(space.history(since, "ImagePullJob")) <= 8
    space.patch({"spec": {"completionPolicy": {"ttlSecondsAfterFinished": 0}}}, "job", "imagepulljob")
    space.until(lambda: not space.seen("ImagePullJob", "job"))
    space.until(lambda: all("nginx:cheap" not in space.tags(node) for node in space.nodes))


def generations(space: PullSpace) -> dict[str, int]:
    """Return how often the spec of each NodeImage has changed."""
    return {one["metadata"]["name"]: one["metadata"]["generation"] for one in space.read("nodeimages")["items"]}


def test_a_node_that_fails_is_named(space: PullSpace):
    space.agents.answers[space.nodes[1], "nginx:shown"] = FAIL
    space.apply(job("nginx:shown", parallelism=4))
    status = space.done(failed=1, succeeded=3, message="job has completed")
    assert status["failedNodes"] == [space.nodes[1]]
    shown = space.flotilla("get", "imagepulljob", "job")
    assert "nginx:shown: job has completed" in shown
    assert space.nodes[1] in shown
    assert "nginx:shown" in space.flotilla("get", "nodeimage", space.nodes[0])
    explained = space.flotilla("explain", "imagepulljob", "job")
    assert "3 of 4 nodes have the image" in explained
