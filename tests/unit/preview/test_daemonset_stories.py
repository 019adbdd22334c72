"""Plans of DaemonSets, node by node. The play begins with the pods of the golden DaemonSet."""

from copy import deepcopy
from typing import Any

import pytest

from flotilla_common.api.documents import Json
from flotilla_insight.preview.report import Report
from tests.unit.preview.live import story_of
from tests.unit.workload.openkruise import documents, revisions

GOLDEN = {"node1": "ads-hrdpf", "node2": "ads-ngtmc", "node3": "ads-t6cb5"}
"""Its pods by node: the first is of the revision before, held by a partition of 1."""


def stored(**rolling: Any) -> Json:
    (daemonset,) = documents("daemonsets")
    daemonset["spec"]["minReadySeconds"] = 0  # plans are made at another time than it was
    daemonset["spec"]["updateStrategy"]["rollingUpdate"].update(rolling)
    return daemonset


def with_image(image: str, **rolling: Any) -> Json:
    changed = stored(**rolling)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return changed


def world(*nodes: Json) -> dict[str, list[Json]]:
    pods = [one for one in documents("pods") if one["metadata"]["name"].startswith("ads-")]
    return {"Pod": pods, "Node": list(nodes), "ControllerRevision": revisions("DaemonSet", "ads")}


def node(name: str, *taints: str) -> Json:
    spec: Json = {"taints": [{"key": taint, "effect": "NoSchedule"} for taint in taints]} if taints else {}
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "labels": {}}, "spec": spec}


NODES = [node(name) for name in GOLDEN]


def done(story: Report) -> list[list[tuple[str, str, str]]]:
    """Return (action, name or alias, node) of each wave's pods."""
    waves = [
        sorted((step.do, step.name or step.alias, step.node) for step in wave.steps if step.kind == "Pod")
        for wave in story.waves
    ]
    return [wave for wave in waves if wave]


async def test_a_smaller_partition_updates_the_rest_where_it_runs() -> None:
    story = await story_of("DaemonSet", stored(), stored(partition=0), world(*NODES))
    assert done(story) == [[("updateInPlace", "ads-hrdpf", "node1")]]
    assert story.revision is not None
    assert (story.revision.name, story.revision.new) == ("ads-5649fd9f5b", False)


async def test_from_the_last_node_to_the_first() -> None:
    story = await story_of("DaemonSet", stored(), with_image("nginx:1.23.0", partition=0), world(*NODES))
    assert [[name for _, name, _ in wave] for wave in done(story)] == [["ads-t6cb5"], ["ads-ngtmc"], ["ads-hrdpf"]]
    assert story.revision is not None
    assert story.revision.new
    assert story.revision.name.startswith("ads-")
    assert story.serving is not None
    assert (story.serving.now, story.serving.lowest, story.serving.end) == (3, 2, 3)
    assert [reason.code for reason in story.reasons] == ["Complete"]


async def test_recreated_pods_come_back_to_their_nodes() -> None:
    changed = with_image("nginx:1.23.0", partition=0, rollingUpdateType="Standard", maxUnavailable=3)
    story = await story_of("DaemonSet", stored(), changed, world(*NODES))
    assert done(story)[0] == [("recreate", pod, name) for name, pod in GOLDEN.items()]
    made = [step for wave in done(story)[1:] for step in wave]
    assert sorted(name for what, _, name in made if what == "create") == list(GOLDEN)
    assert {alias.rpartition(" ")[0] for _, alias, _ in made} == {"new pod"}
    assert {step.why for wave in story.waves for step in wave.steps if step.do == "recreate"} == {
        "rollingUpdateType is Standard"
    }
    assert story.serving is not None
    assert story.serving.end == 3


async def test_why_it_cannot_be_done_in_place() -> None:
    changed = with_image("nginx:1.23.0", partition=2)
    changed["spec"]["template"]["spec"]["containers"][0]["command"] = ["nginx"]
    story = await story_of("DaemonSet", stored(), changed, world(*NODES))
    (why,) = {step.why for wave in story.waves for step in wave.steps if step.do == "recreate"}
    assert "command" in why


@pytest.mark.parametrize(
    ("new", "expected"),
    [pytest.param(node("node4"), ["node4"], id="fits"), pytest.param(node("node4", "dedicated"), [], id="tainted")],
)
async def test_nodes_without_a_pod(new: Json, expected: list[str]) -> None:
    story = await story_of("DaemonSet", stored(), stored(paused=False), world(*NODES, new))
    created = [name for wave in done(story) for what, _, name in wave if what == "create"]
    assert created == expected
    assert ("NodesExcluded" in {reason.code for reason in story.reasons}) == (not expected)


async def test_a_new_daemonset_gets_a_pod_on_every_node() -> None:
    made = deepcopy(stored())
    made["metadata"]["uid"] = "uid-made"
    made.pop("status")
    story = await story_of("DaemonSet", {**made, "spec": {}}, made, {"Node": NODES})
    created = [step for wave in done(story) for step in wave]
    assert sorted(name for _, _, name in created) == list(GOLDEN)
    assert {what for what, _, _ in created} == {"create"}
