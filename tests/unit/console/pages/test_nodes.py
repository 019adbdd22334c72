"""The pages of nodes."""

from typing import Any

import msgspec

from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE
from flotilla_common.api.resources import NODE
from flotilla_common.bus.heartbeat import HEARTBEAT_SECONDS
from flotilla_common.bus.interface import Message
from flotilla_console.blocks.types import Notice
from flotilla_console.pages.nodes import build_all, build_one
from tests.unit.console.model.worlds import CREATED, Only, World, column, table, texts

IMAGE = "registry/web"


def node(world: World, name: str, ready: str = "True", *, pressure: bool = False, **spec: Any) -> None:
    conditions = [
        {"type": "Ready", "status": ready, "lastTransitionTime": CREATED, "reason": "KubeletReady"},
        {"type": "DiskPressure", "status": str(pressure), "lastTransitionTime": CREATED},
    ]
    world.put(NODE, name, "", spec=spec, status={"conditions": conditions})


def pulls(world: World, name: str, *entries: tuple[str, str, int], version: int = 1) -> None:
    """Add a NodeImage with entries of tag, phase and progress."""
    tags = [
        {"tag": tag, "version": 1, "ownerReferences": [{"kind": "ImagePullJob", "name": "warm"}]}
        for tag, _, _ in entries
    ]
    statuses = [
        {"tag": tag, "phase": phase, "progress": progress, "version": version, "message": f"{phase} it"}
        for tag, phase, progress in entries
    ]
    phases = [phase for _, phase, _ in entries]
    world.put(
        NODE_IMAGE,
        name,
        "",
        spec={"images": {IMAGE: {"tags": tags}}},
        status={
            "desired": len(entries),
            "failed": phases.count("Failed"),
            "pulling": phases.count("Pulling"),
            "imageStatuses": {IMAGE: {"tags": statuses}},
        },
    )


def beat(world: World, name: str, **more: Any) -> None:
    body = {"service": "nodeagent", "replica": name, "version": "1.2"} | more
    world.model.beats.take(Message(subject=f"heartbeat.v1.nodeagent.{name}", data=msgspec.json.encode(body)))


def world() -> World:
    made = World()
    node(made, "node-1")
    node(made, "node-2", "False")
    node(made, "node-3", pressure=True, unschedulable=True)
    made.pod("web-0")
    made.pod("web-1", ready=False)
    made.pod("api-0", "bank")
    pulls(made, "node-1", ("v1", "Succeeded", 100), ("v2", "Pulling", 40), ("v3", "Failed", 0))
    beat(made, "node-1", waiting={"runtime": "no socket"})
    return made


def test_nodes_in_trouble_come_first() -> None:
    found = table(build_all(world().request()), "nodes")
    assert column(found, "name") == ["node-2", "node-3", "node-1"]
    assert column(found, "state") == ["NotReady", "DiskPressure, SchedulingDisabled", "Ready"]
    assert column(found, "pulls") == ["", "", "1 failed, 1 pulling"]
    assert column(found, "agent") == ["no heartbeat", "no heartbeat", "alive"]
    assert "2 of 3 pods serve" in texts(found)


def test_nodes_can_be_sorted() -> None:
    names = column(table(build_all(world().request(query={"sort": "-name"})), "nodes"), "name")
    assert names == ["node-3", "node-2", "node-1"]
    assert column(table(build_all(world().request(query={"sort": "-pods"})), "nodes"), "name")[0] == "node-1"


def test_pods_that_may_not_be_seen_are_not_counted() -> None:
    found = build_all(world().request(Only(nodes=("",), pods=("bank",))))
    assert "1 of 1 pods serve" in texts(found)
    assert column(table(found, "nodes"), "pulls") == ["", "", ""]


def test_nodes_need_the_right_to_list_them() -> None:
    allowed = Only(pods=("shop", "bank"), nodeimages=("",))
    found = build_all(world().request(allowed))
    assert "You may not list nodes" in texts(found)
    assert "node-1" not in texts(found)
    assert build_one(world().request(allowed, name="node-1")) is None


def test_a_node_shows_its_pulls_with_progress_the_failed_first() -> None:
    found = build_one(world().request(name="node-1"))
    shown = table(found, "pulls")
    assert column(shown, "image") == [f"{IMAGE}:v3", f"{IMAGE}:v2", f"{IMAGE}:v1"]
    assert column(shown, "phase") == ["Failed", "Pulling", "Succeeded"]
    assert column(shown, "for") == ["ImagePullJob warm"] * 3
    assert [row.cells[2][0].label for row in shown.rows] == ["0 %", "40 %", "100 %"]  # type: ignore[union-attr]
    assert column(table(found, "pods"), "name") == ["web-1", "api-0", "web-0"]
    assert "runtime no socket" in texts(found)


def test_a_status_of_an_older_round_is_not_shown() -> None:
    made = world()
    pulls(made, "node-1", ("v1", "Succeeded", 100), version=0)
    assert column(table(build_one(made.request(name="node-1")), "pulls"), "phase") == ["Waiting"]


def test_an_agent_that_fell_silent_is_shown() -> None:
    made = world()
    made.clock.time += 4 * HEARTBEAT_SECONDS
    assert "silent for 20 s" in column(table(build_all(made.request()), "nodes"), "agent")


def test_a_node_without_pulls_or_with_hostile_ones_has_a_page() -> None:
    made = world()
    made.put(NODE_IMAGE, "node-2", "", spec={"images": "x"}, status={"imageStatuses": [None]})
    pulls(made, "node-3", ("<script>", "NoSuchPhase", -(10**9)), ("v2", "Pulling", 10**9))
    assert build_one(made.request(name="node-2")) is not None
    found = build_one(made.request(name="node-3"))
    assert [row.cells[2][0].label for row in table(found, "pulls").rows] == ["100 %", "0 %"]  # type: ignore[union-attr]
    assert found is not None
    assert isinstance(found.blocks[0], Notice)


def test_a_node_that_does_not_exist_has_no_page() -> None:
    assert build_one(world().request(name="node-9")) is None
