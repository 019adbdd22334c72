"""NodeImages through the life of their nodes, and reports that must not count (imagepull.md §4)."""

from datetime import UTC, datetime

from flotilla_common.api.kinds.nodeimage.types import FAILED, ImageStatus, NodeImageStatus, TagStatus
from flotilla_common.node.reports import NodeImageReport
from flotilla_dev.cluster import kwok
from tests.integration.jobs.conftest import PullSpace
from tests.integration.jobs.test_image_jobs import job
from tests.support.fake_agents import HANG


def test_node_images_show_counts_and_the_labels_of_their_nodes(space: PullSpace):
    node = space.nodes[0]
    header, line = space.kubectl("get", "nodeimages", node).splitlines()
    assert header.split() == ["NAME", "DESIRED", "PULLING", "SUCCEED", "FAILED", "AGE"]
    status = space.read("nodeimage", node)["status"]
    assert line.split()[:5] == [node, *(str(status[field]) for field in ("desired", "pulling", "succeeded", "failed"))]
    space.kubectl("label", "nodeimage", node, "mine=yes")
    space.until(lambda: "mine" not in space.seen("NodeImage", node)["metadata"]["labels"])
    wanted = space.read("node", node)["metadata"]["labels"]
    space.until(lambda: space.seen("NodeImage", node)["metadata"]["labels"] == wanted)


def test_a_user_may_ask_a_node_for_an_image(space: PullSpace):
    node = space.nodes[1]
    tag = {"tag": "own", "pullPolicy": {"ttlSecondsAfterFinished": 4}}
    space.patch({"spec": {"images": {"busybox": {"tags": [tag]}}}}, node, "nodeimage")
    space.until(lambda: "busybox:own" in space.tags(node) and "createdAt" in space.tags(node)["busybox:own"])
    space.until(lambda: phase(space, node, "busybox", "own") == "Succeeded")
    space.until(lambda: "busybox:own" not in space.tags(node))


def phase(space: PullSpace, node: str, image: str, tag: str) -> str:
    statuses = space.seen("NodeImage", node).get("status", {}).get("imageStatuses", {})
    found = [one for one in statuses.get(image, {}).get("tags", []) if one["tag"] == tag]
    return found[0]["phase"] if found else ""


def test_a_node_speaks_only_for_itself_and_revives_nothing(space: PullSpace):
    node, other = space.nodes[0], space.nodes[1]
    space.agents.answers[node, "nginx:forged"] = HANG
    space.apply(job("nginx:forged", selector={"names": [node]}))
    space.until(lambda: phase(space, node, "nginx", "forged") == "Pulling")
    uid = space.seen("NodeImage", node)["metadata"]["uid"]
    end = datetime.now(UTC).replace(microsecond=0)
    entry = TagStatus(tag="forged", phase=FAILED, version=0, completion_time=end, message="m")
    status = NodeImageStatus(image_statuses={"nginx": ImageStatus(tags=[entry])})
    assert "may not report" in space.agents.report(other, node, NodeImageReport(uid=uid, status=status)).why
    assert "no object with uid" in space.agents.report(node, node, NodeImageReport(uid="other", status=status)).why
    assert phase(space, node, "nginx", "forged") == "Pulling"
    say(space, node, NodeImageReport(uid=uid, status=status))
    space.until(lambda: phase(space, node, "nginx", "forged") == "Failed")
    space.done(failed=1, message="job has completed")
    again = TagStatus(tag="forged", phase="Pulling", version=0)
    status = NodeImageStatus(image_statuses={"nginx": ImageStatus(tags=[again])})
    say(space, node, NodeImageReport(uid=uid, status=status))
    assert phase(space, node, "nginx", "forged") == "Failed"


def say(space: PullSpace, node: str, report: NodeImageReport) -> None:
    """Report as the node's agent, and again when its own report has come in between."""
    answer = space.agents.report(node, node, report)
    while answer.again:
        answer = space.agents.report(node, node, report)
    assert answer.accepted, answer


SILENT = "on 1 node: ghost; see that it runs there"


def test_a_node_image_may_live_without_a_node(space: PullSpace):
    """Examples 30 and 31. It has no agent either, and the job reports that."""
    labels = {"apps.kruise.io/fake-nodeimage": "yes"}
    for name, held in (("ghost", labels), ("stray", {})):
        space.apply(
            {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "NodeImage", "metadata": {"name": name, "labels": held}}
        )
    space.until(lambda: bool(space.seen("NodeImage", "ghost")) and not space.seen("NodeImage", "stray"))
    space.apply(job("nginx:ghost", parallelism=5))
    space.done(desired=5, succeeded=4, active=1)
    space.until(lambda: SILENT in space.flotilla("explain", "imagepulljob", "job"), 40)
    space.kubectl("delete", "nodeimage", "ghost")
    space.done(desired=4, succeeded=4, message="job has completed")


def test_a_node_comes_and_goes_with_work_pending(space: PullSpace):
    """A job that never ends has work for a node that joins, and has one node less when that goes."""
    name = f"node-{space.name}"
    selector = {"matchLabels": {"kubernetes.io/hostname": name}}
    space.apply(job("nginx:gone", selector=selector, completionPolicy={"type": "Never"}))
    space.done(desired=0, message="job is running, no progress")
    node = kwok.node(len(space.nodes))
    node["metadata"]["name"] = node["metadata"]["labels"]["kubernetes.io/hostname"] = name
    space.create(node)
    space.done(desired=1, active=1)
    space.kubectl("delete", "node", name)
    space.done(desired=0, active=0)
    space.until(lambda: space.seen("NodeImage", name) == {})
