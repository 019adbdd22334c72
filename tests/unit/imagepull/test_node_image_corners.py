"""NodeImages with little information: new nodes, tags without a policy, earlier entries (imagepull.md §4)."""

from typing import Any

import pytest

from flotilla_common.api.kinds.nodeimage.types import NodeImage, NodeImageStatus
from flotilla_common.control.plan import Plan
from flotilla_jobs.nodeimage.plan import plan
from flotilla_jobs.nodeimage.snapshot import NodeImageSnapshot
from flotilla_jobs.nodeimage.status import reported
from tests.testkit.documents import Json
from tests.unit.imagepull.build import NOW, entry, node, node_image, status_of, summary, tag

OLD = 3600.0


def passed(image: NodeImage) -> Plan:
    return plan(NodeImageSnapshot(name="n1", node=node("n1"), image=image), NOW)


def without_policy(**members: Any) -> Json:
    return {key: value for key, value in tag("J", **members).items() if key != "pullPolicy"}


def test_a_tag_without_a_policy_neither_expires_nor_overruns():
    for phase in ("Succeeded", "Pulling"):
        image = node_image("n1", [without_policy(created=OLD)], [entry(phase, ended=OLD)])
        assert summary(passed(image)) == []
        assert status_of(passed(image), {"imageStatuses": {}}).get("failed", 0) == 0


def test_an_image_that_the_report_does_not_speak_of_keeps_its_entry():
    image = node_image("n1", [tag("J")], [entry("Pulling")])
    assert reported(image, NodeImageStatus()).image_statuses["nginx"].tags == image.status.image_statuses["nginx"].tags


@pytest.mark.parametrize(
    ("version", "progress"), [pytest.param(0, 40, id="this round"), pytest.param(1, 0, id="an earlier round")]
)
def test_what_is_given_up_keeps_what_was_said_of_this_round(version: int, progress: int):
    said = entry("Pulling") | {"progress": 40}
    image = node_image("n1", [tag("J", created=OLD, version=version, activeDeadlineSeconds=60)], [said])
    (found,) = status_of(passed(image), {})["imageStatuses"]["nginx"]["tags"]
    assert (found["phase"], found.get("version", 0), found.get("progress", 0)) == ("Failed", version, progress)


def test_a_tag_without_a_time_is_not_given_up():
    undated = {key: value for key, value in tag("J").items() if key != "createdAt"}
    image = node_image("n1", [undated])
    assert "imageStatuses" not in status_of(passed(image), {})


def test_a_node_with_many_images_to_pull_names_five():
    image = node_image("n1", [tag("J", name=f"1.{number}") for number in range(7)])
    (reason,) = [reason for reason in passed(image).reasons if reason.code == "PullingImages"]
    assert len(reason.objects) == 5
