"""The effect of an applied PodProbeMarker on the NodePodProbes of nodes, and what it leaves alone."""

from copy import deepcopy

import pytest

from flotilla_cli.preview.render import render
from flotilla_common.api.kinds.nodepodprobe.types import NODE_POD_PROBE, PROBES_PER_POD
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER
from flotilla_common.api.resources import NODE, POD
from flotilla_insight.preview import simulation
from flotilla_insight.preview.report import Report
from tests.testkit.documents import Json
from tests.unit.podprobemarker.world import World, probe
from tests.unit.preview.live import story_of


def world_of(*nodes_of_pods: str) -> World:
    """Return a world of three nodes with one pod on each of the named nodes."""
    world = World(nodes_there=3)
    for number, node in enumerate(nodes_of_pods):
        world.pod(f"p{number}", node)
    return world


def marker(*probes: Json, generation: int = 1, name: str = "m") -> Json:
    spec = {"selector": {"matchLabels": {"app": "game"}}, "probes": list(probes) or [probe()]}
    meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "generation": generation, "resourceVersion": "9999"}
    return {"metadata": meta, "spec": spec}


async def foreseen(world: World, before: Json, after: Json) -> Report:
    resources = (NODE, POD, NODE_POD_PROBE, POD_PROBE_MARKER)
    objects = {resource.kind: deepcopy(world.objects.all(resource)) for resource in resources}
    return await story_of("PodProbeMarker", before, after, objects)


def steps(story: Report) -> list[tuple[str, str, str, list[tuple[str, str | None, str | None]]]]:
    return [
        (one.do, one.kind, one.name, [(change.what, change.before, change.after) for change in one.changes])
        for wave in story.waves
        for one in wave.steps
        if one.kind == NODE_POD_PROBE.kind
    ]


async def test_the_nodes_of_its_pods_get_the_probes():
    story = await foreseen(world_of("n1", "n1", "n3"), marker(), marker())
    assert steps(story) == [
        ("patch", "NodePodProbe", "n1", [("probe ns/m#idle", None, "2 pods")]),
        ("patch", "NodePodProbe", "n3", [("probe ns/m#idle", None, "1 pod")]),
    ]
    assert [(reason.code, reason.message) for reason in story.reasons] == [
        ("PodsProbed", "its probes are for 3 pods on 2 nodes")
    ]
    told = render(story, everything=False).plain
    assert "write NodePodProbe n1: probe ns/m#idle - → 2 pods" in told


async def test_a_play_ends_however_many_nodes_there_are(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(simulation, "MOST_PASSES", 50)
    world = World(nodes_there=20)
    for number in range(1, 21):
        world.pod(f"p{number}", f"n{number}")
    story = await foreseen(world, marker(), marker())
    assert (len(steps(story)), story.notes) == (20, ())


async def test_a_node_without_an_object_gets_one():
    world = world_of("n1")
    world.vanish(NODE_POD_PROBE, "n1")
    story = await foreseen(world, marker(), marker())
    assert steps(story) == [("create", "NodePodProbe", "n1", [("probe ns/m#idle", None, "1 pod")])]


async def test_a_change_is_told_probe_by_probe():
    world = world_of("n1", "n2")
    world.marker(probe(), probe("old", podConditionType="old"))
    world.settle()
    stored = world.objects.all(POD_PROBE_MARKER)[0]
    changed = deepcopy(stored)
    slower = {"exec": {"command": ["true"]}, "periodSeconds": 60}
    changed["spec"]["probes"] = [probe(probe=slower), probe("new", podConditionType="new")]
    story = await foreseen(world, stored, changed)
    wanted = [
        ("probe ns/m#idle", "1 pod", "1 pod, with another spec"),
        ("probe ns/m#old", "1 pod", None),
        ("probe ns/m#new", None, "1 pod"),
    ]
    assert steps(story) == [("patch", "NodePodProbe", name, wanted) for name in ("n1", "n2")]


async def test_what_does_not_change_writes_nothing():
    world = world_of("n1")
    world.marker()
    world.settle()
    stored = world.objects.all(POD_PROBE_MARKER)[0]
    story = await foreseen(world, stored, stored)
    assert steps(story) == []


async def test_other_markers_and_namespaces_keep_their_probes():
    world = world_of("n1")
    world.marker(probe("other", podConditionType="other"), name="o")
    elsewhere = {"namespace": "far", "uid": "uid-far"}
    world.pod("q", "n1", uid="uid-far", metadata=elsewhere)
    world.objects.put(
        POD_PROBE_MARKER, marker() | {"metadata": {**marker()["metadata"], "namespace": "far", "uid": "uid-far-m"}}
    )
    for _ in range(2):
        world.pass_of_node("n1")
    assert set(world.written()) == {"uid-p0", "uid-far"}
    story = await foreseen(world, marker(), marker())
    assert steps(story) == [("patch", "NodePodProbe", "n1", [("probe ns/m#idle", None, "1 pod")])]


async def test_what_there_is_no_room_for_is_told():
    many = [probe(f"x{number}", podConditionType=f"x{number}") for number in range(PROBES_PER_POD + 1)]
    story = await foreseen(world_of("n1"), marker(*many), marker(*many))
    [(_, _, _, changes)] = steps(story)
    assert len(changes) == PROBES_PER_POD
    assert "TooManyProbes" in {reason.code for reason in story.reasons}


@pytest.mark.parametrize("refused", ["pods", "nodepodprobes"])
async def test_a_user_who_may_not_look_everywhere_sees_the_marker_alone(refused: str):
    world = world_of("n1")
    resources = (NODE, POD, NODE_POD_PROBE)
    objects = {resource.kind: deepcopy(world.objects.all(resource)) for resource in resources}
    story = await story_of("PodProbeMarker", marker(), marker(), objects, forbidden=frozenset({refused}))
    assert steps(story) == []
    assert any(note.startswith(f"{refused} could not be read") for note in story.notes)
