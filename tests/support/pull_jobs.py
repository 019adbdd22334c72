"""ImagePullJobs as a user creates them, and their results."""

from tests.support.cluster import Cluster
from tests.support.workspace import Workspace
from tests.testkit.documents import Json


def pull(space: Workspace, image: str, name: str = "pull", *, nodes: tuple[str, ...] = (), **spec: object) -> None:
    """Run `kubectl create` of a job for these nodes, or for all, at once."""
    chosen = {"selector": {"names": list(nodes)}} if nodes else {}
    document = {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "ImagePullJob",
        "metadata": {"name": name},
        "spec": {"image": image, "parallelism": 10, "completionPolicy": {"type": "Always"}, **chosen, **spec},
    }
    space.create(document)


def job_status(space: Workspace, name: str = "pull") -> Json:
    """Return the job's status; {} while it has none."""
    return space.read("imagepulljob", name).get("status", {})


def ended(space: Workspace, name: str = "pull", seconds: float = 60) -> Json:
    """Wait for the job's end; its status."""
    space.until(lambda: "completionTime" in job_status(space, name), seconds)
    return job_status(space, name)


def counts(status: Json) -> dict[str, int]:
    """Return the counts of nodes by result of the pull."""
    return {name: status.get(name, 0) for name in ("desired", "active", "succeeded", "failed")}


def tag_entry(cluster: Cluster, node: str, image: str, tag: str = "v1") -> Json:
    """Return the status of a tag in the node's NodeImage; {} if absent."""
    status = cluster.read("nodeimage", node).get("status", {})
    tags: list[Json] = status.get("imageStatuses", {}).get(image, {}).get("tags", [])
    return next((one for one in tags if one["tag"] == tag), Json())


def about_image(cluster: Cluster, kind: str, reason: str, image: str) -> list[Json]:
    """Return the events of this reason about objects of this kind that name the image."""
    events: list[Json] = cluster.read("events", "-A", f"--field-selector=involvedObject.kind={kind}")["items"]
    return [one for one in events if one["reason"] == reason and f"Image {image}:" in one["message"]]
