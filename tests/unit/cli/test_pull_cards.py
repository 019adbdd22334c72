"""`flotilla get` of image pulls."""

import msgspec

from flotilla_insight.views.images import list_job, node_image, pull_job
from tests.unit.imagepull import build


def test_a_pull_job():
    status = {"desired": 3, "active": 1, "succeeded": 1, "failed": 1, "failedNodes": ["n2"], "message": "m"}
    face = pull_job(msgspec.json.encode(build.job(status=status)))
    assert face.headline == "nginx:1.25: m"
    assert [tuple(row) for row in face.rows] == [("3", "1", "1", "1", "n2")]
    assert "not reconciled yet" in pull_job(msgspec.json.encode(build.job())).headline


def test_a_list():
    failures = [{"imagePullJob": "L-x", "name": "b", "message": "m"}]
    status = {"desired": 2, "completed": 2, "succeeded": 1, "failedImageStatuses": failures}
    face = list_job(msgspec.json.encode(build.list_job("a", "b", status=status)))
    assert face.headline == "2 of 2 images are done, 1 are on every node"
    assert [tuple(row) for row in face.rows] == [("a", "", ""), ("b", "failed somewhere", "L-x")]


def test_a_node_image_shows_only_the_round_that_counts():
    tags = [build.tag("J", version=1), build.tag(name="2")]
    entries = [build.entry("Succeeded", version=0), build.entry("Failed", name="2", message="boom")]
    face = node_image(msgspec.json.encode(build.node_image("n1", tags, entries)))
    assert [tuple(row) for row in face.rows] == [("nginx:1.25", "-", "ns/J", ""), ("nginx:2", "Failed", "-", "boom")]
    assert face.headline == "the node's agent has not reported yet"


def test_a_node_without_work():
    face = node_image(b'{"metadata": {"name": "n1"}, "status": {"desired": 0}}')
    assert face.headline == "0 of 0 images are there, 0 on the way"
