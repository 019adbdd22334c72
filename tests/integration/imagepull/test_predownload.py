"""Images pulled on nodes before a CloneSet updates their pods in place (common.md §12)."""

from tests.integration.imagepull.conftest import PullSpace
from tests.support.fake_agents import HANG
from tests.support.workspace import cloneset, image

FLAGS = ("--feature-gates=PreDownloadImageForInPlaceUpdate=true",)


def jobs(space: PullSpace) -> dict[str, str]:
    """Return the images of the namespace's jobs by name."""
    return {item["metadata"]["name"]: item["spec"]["image"] for item in space.read("imagepulljobs")["items"]}


def test_images_are_there_before_the_pods_need_them(space: PullSpace):
    strategy = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1, "partition": 5}
    strategy["inPlaceUpdateStrategy"] = {"imagePreDownloadParallelism": 4}
    space.apply(cloneset(6, strategy=strategy))
    space.settled(updatedReadyReplicas=6)
    assert jobs(space) == {}
    space.apply(
        cloneset(6, strategy=strategy, template={"spec": {"containers": [{"name": "nginx", "image": "nginx:9"}]}})
    )
    space.until(lambda: len(jobs(space)) == 1)
    (name,) = jobs(space)
    update = space.clone()["status"]["updateRevision"]
    assert (name, jobs(space)[name]) == (f"{update}-nginx", "nginx:9")
    space.done(name, message="job has completed", failed=0)
    old = {pod["spec"]["nodeName"] for pod in space.pods.values() if image(pod) != "nginx:9"}
    assert old <= {node for node in space.nodes if "nginx:9" in space.tags(node)}
    assert ("Normal", "CreatedImagePullJob", f"created ImagePullJob {name} for image: nginx:9") in space.events()
    labels = space.read("controllerrevision", update)["metadata"]["labels"]
    assert labels["apps.kruise.io/pre-predownload-created"] == "true"
    space.patch({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0, "maxUnavailable": 3}}}})
    space.settled(updatedReadyReplicas=6, updatedReplicas=6)
    space.until(lambda: jobs(space) == {})


def test_nodes_pull_in_the_order_of_the_update(space: PullSpace):
    strategy = {
        "podUpdatePolicy": "InPlaceIfPossible",
        "maxUnavailable": 1,
        "partition": 8,
        "priorityStrategy": {"weightPriority": [{"weight": 100, "matchSelector": {"matchLabels": {"first": "yes"}}}]},
    }
    for node in space.nodes:
        space.agents.answers[node, "nginx:ordered"] = HANG
    space.apply(cloneset(8, strategy=strategy))
    space.settled(updatedReadyReplicas=8)
    last = max(pod["spec"]["nodeName"] for pod in space.pods.values())
    for name, pod in space.pods.items():
        if pod["spec"]["nodeName"] == last:
            space.label(name, "first=yes")
    containers = {"spec": {"containers": [{"name": "nginx", "image": "nginx:ordered"}]}}
    space.apply(cloneset(8, strategy=strategy, template=containers))
    space.until(lambda: any("nginx:ordered" in space.tags(node) for node in space.nodes))
    assert [node for node in space.nodes if "nginx:ordered" in space.tags(node)] == [last]


def test_small_sets_are_not_worth_it(space: PullSpace):
    strategy = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1}
    space.apply(cloneset(3, strategy=strategy))
    space.settled(updatedReadyReplicas=3)
    space.set_image("nginx:small")
    space.settled(updatedReadyReplicas=3, updatedReplicas=3)
    update = space.clone()["status"]["updateRevision"]
    labels = space.read("controllerrevision", update)["metadata"]["labels"]
    assert labels["apps.kruise.io/image-predownload-ignored"] == "true"
    assert jobs(space) == {}
