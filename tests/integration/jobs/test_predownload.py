"""Images pulled on nodes before a CloneSet updates their pods in place (common.md §12)."""

from tests.integration.jobs.conftest import PullSpace
from tests.support.workspace import cloneset, image


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
