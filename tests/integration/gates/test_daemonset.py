"""DaemonSets: pods created with their node, lost nodes, images pulled ahead (daemonset.md §4.7, §4.8, §4.11)."""

from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from tests.support.daemons import IN_PLACE, NAME, NEW, OLD, by_node, daemonset, settled, started, strategy
from tests.support.workspace import Workspace, image

WATCHED = (DAEMON_SET,)


def test_images_are_pulled_ahead_of_an_update_in_rounds(space: Workspace):
    manifest = daemonset(IN_PLACE | {"partition": 2})
    manifest["metadata"]["annotations"] = {"apps.kruise.io/image-predownload-parallelism": "2"}
    space.apply(manifest)
    settled(space, 3, updatedNumberScheduled=3)
    space.until(lambda: not space.read("imagepulljob")["items"])
    space.set_image(NEW, NAME)
    revision = settled(space, 3, updatedNumberScheduled=1)["updateRevision"]
    job = f"{NAME}-{revision}-nginx"
    spec = space.read("imagepulljob", job)["spec"]
    assert (spec["image"], spec["parallelism"]) == (NEW, 2)
    assert spec["completionPolicy"] == {"type": "Always", "ttlSecondsAfterFinished": 600}
    space.event("CreatedImagePullJob", f"created ImagePullJob {job} for image: {NEW}")
    labels = space.read("controllerrevision", f"{NAME}-{revision}")["metadata"]["labels"]
    assert labels["apps.kruise.io/pre-predownload-created"] == "true"
    strategy(space, partition=0)
    settled(space, 3, updatedNumberScheduled=3)
    space.until(lambda: not space.read("imagepulljob")["items"])


def test_a_roll_does_not_wait_for_nodes_that_no_longer_fit(space: Workspace):
    """Row 35: the excluded node's pod terminates until its finalizer is removed, and takes no budget.

    Our controller assigns pods, not the scheduler: they are created with their node.
    """
    before = started(space, 3)
    first = {event.object["metadata"]["name"]: event.object for event in reversed(space.history())}
    for node, pod in before.items():
        spec = first[pod["metadata"]["name"]]["spec"]
        assert (spec["nodeName"], spec["schedulerName"]) == (node, "kubernetes.io/daemonset-controller")

    lingering = before["node-0"]["metadata"]["name"]
    space.set_finalizers(lingering, "example.com/held")
    hostname = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["node-0"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    spec = {"affinity": affinity, "containers": [{"name": "nginx", "image": NEW}]}
    space.patch({"spec": {"template": {"spec": spec}}}, NAME)
    space.until(lambda: space.status(NAME).get("updatedNumberScheduled") == 2)
    assert {node: image(pod) for node, pod in by_node(space).items()} == {"node-1": NEW, "node-2": NEW}
    assert image(space.pod(lingering)) == OLD
    space.set_finalizers(lingering)
    settled(space, 2, numberMisscheduled=0)
