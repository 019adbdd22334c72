"""The worked examples of PersistentPodStates (persistentpodstate.md §9), played on plain tables."""

from typing import Any

import pytest

from flotilla_common.api.kinds.persistentpodstate.types import (
    PERSISTENT_POD_STATE,
    PersistentPodStateSpec,
    PodState,
    PreferredTopology,
    Topology,
)
from flotilla_common.api.meta import OwnerReference
from flotilla_common.api.resources import POD
from tests.unit.persistentpodstate.world import APPS, ASKS, AUTO, OURS, PREFERRED, REQUIRED, H, O, World, Z


def record(node: int, *keys: str, **annotations: str) -> PodState:
    labels = {O: "linux", H: f"node-{node}", Z: f"zone-{node}"}
    chosen = {key: labels[key] for key in keys or (O, H)}
    return PodState(node_name=f"node-{node}", node_topology_labels=chosen, annotations=annotations)


async def running(replicas: int = 3) -> World:
    """Return the world of row 1."""
    world = World()
    world.workload(replicas)
    world.pods(*range(replicas))
    await world.run()
    return world


@pytest.mark.parametrize("api", [APPS, OURS])
async def test_row_1_generated_and_recorded(api: str) -> None:
    world = World()
    world.workload(3, api=api)
    world.pods(0, 1, 2, api=api)
    assert await world.run() == ["note Generated", "done Recorded"]
    state = world.state
    assert state is not None
    owner = OwnerReference(api_version=api, kind="StatefulSet", name="s", uid=world.uid(api), controller=True)
    assert state.metadata.owner_references == [owner]
    assert state.spec.target_ref.api_version == api
    assert state.spec.required_persistent_topology == Topology(keys=[O])
    assert state.spec.preferred_persistent_topology == [PreferredTopology(weight=100, preference=Topology(keys=[H]))]
    assert world.records == {f"s-{number}": record(number) for number in range(3)}
    assert state.status.observed_generation == 1


async def test_pods_of_another_namespace_are_not_recorded() -> None:
    """A backup that was restored there keeps its owner references."""
    world = await running(1)
    owner = {"apiVersion": APPS, "kind": "StatefulSet", "name": "s", "uid": world.uid(APPS), "controller": True}
    meta = {"name": "s-0", "namespace": "restored", "uid": "stranger", "ownerReferences": [owner]}
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    world.put(POD, {"metadata": meta, "spec": {"nodeName": "node-5"}, "status": ready})
    await world.run()
    assert world.records == {"s-0": record(0)}


async def test_rows_2_to_4_records_outlive_pods_but_not_their_ordinals() -> None:
    world = await running()
    world.no_pod(1)
    await world.run()
    assert "s-1" in world.records  # row 2: it comes back
    world.workload(1)
    world.pod(2, deletionTimestamp="2026-03-01T12:00:00Z")
    assert await world.run() == ["note Generated", "done Recorded"]
    assert list(world.records) == ["s-0"]  # row 3
    world.workload(3)
    world.pod(1, ready=False)
    assert "waiting WaitingForReady" in await world.run()  # row 4
    assert list(world.records) == ["s-0"]


async def test_rows_5_and_6_switched_off_and_on_again() -> None:
    world = await running()
    before = world.records
    world.workload(3, {})
    await world.run()
    assert world.state is None
    world.workload(3)
    await world.run()
    assert world.records == before


async def test_row_7_without_required() -> None:
    world = await running()
    world.workload(3, {AUTO: "true", PREFERRED: H})
    await world.run()
    assert world.spec.required_persistent_topology is None
    assert world.records["s-0"] == record(0, H)


async def test_rows_8_and_9_a_users_edit_survives() -> None:
    world = await running()
    changed = {"persistentPodStateRetentionPolicy": "WhenDeleted", "requiredPersistentTopology": {"keys": [Z]}}
    world.edit(PERSISTENT_POD_STATE, "s", {"spec": changed})
    world.workload(1)
    world.no_pod(1, 2)
    assert "note KeptWhenScaled" in await world.run()
    assert list(world.records) == ["s-0", "s-1", "s-2"]
    assert world.spec.required_persistent_topology == Topology(keys=[Z])
    world.workload(1, {**ASKS, REQUIRED: f"{O},{Z}"})  # other annotations do replace the keys that they name
    await world.run()
    assert world.spec.required_persistent_topology == Topology(keys=[O, Z])
    assert world.spec.persistent_pod_state_retention_policy == "WhenDeleted"


async def test_row_11_without_its_workload() -> None:
    world = World()
    world.workload(1, {})
    world.pods(0)
    world.by_hand()
    assert await world.run() == ["done Recorded"]
    world.no_workload()
    assert await world.run() == ["stuck TargetMissing"]
    assert world.records == {}


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({AUTO: "true"}, id="row 12"),
        pytest.param({**ASKS, AUTO: "True"}, id="row 13"),
        pytest.param({**ASKS, AUTO: "1"}, id="row 13: 1"),
        pytest.param({REQUIRED: O}, id="no auto"),
    ],
)
async def test_rows_12_and_13_not_asked_for(annotations: dict[str, str]) -> None:
    world = World()
    world.workload(1, annotations)
    await world.run()
    assert world.state is None


async def test_row_17_another_version_is_the_same_workload() -> None:
    world = World()
    world.workload(1, {}, api=OURS)
    world.pods(0, api=OURS)
    world.by_hand(api="apps.kruise.io/v1alpha1")
    await world.run()
    assert world.records == {"s-0": record(0, O)}


async def test_rows_18_and_19_not_ready_and_no_node() -> None:
    world = await running()
    world.pod(1, on="node-5", ready=False)
    await world.run()
    assert world.records["s-1"] == record(1)
    world.pod(1, on="node-5")
    world.pod(2, on="lost")
    assert "waiting NodeUnknown" in await world.run()
    assert world.records["s-1"] == record(5)
    assert world.records["s-2"] == record(2)
    world.node("lost", **{O: "linux", H: "lost"})
    assert world.context.woken[-1] == ("n", "s")


async def test_row_20_a_node_without_the_label() -> None:
    world = World()
    world.node("node-0", other="label")
    world.workload(1)
    world.pods(0)
    assert "stuck LabelsMissing" in await world.run()
    assert world.records == {"s-0": PodState(node_name="node-0")}


async def test_row_21_reserved_ordinals() -> None:
    world = World()
    world.workload(3, api=OURS, reserveOrdinals=[1])
    for ordinal in (0, 2, 3):
        world.pod(ordinal, api=OURS)
    await world.run()
    world.workload(3, api=OURS, reserveOrdinals=["1-2"])
    world.pod(4, api=OURS)
    world.pod(2, api=OURS, deletionTimestamp="2026-03-01T12:00:00Z")
    await world.run()
    assert sorted(world.records) == ["s-0", "s-3", "s-4"]


async def test_row_22_scaled_to_nothing() -> None:
    world = await running()
    world.workload(0)
    await world.run()
    assert world.records == {}


async def test_row_23_annotations_follow() -> None:
    world = World()
    world.workload(1, {**ASKS, "kruise.io/persistent-pod-annotations": "a"})
    world.pod(0, annotations={"a": "1", "b": "2"})
    await world.run()
    assert world.records["s-0"] == record(0, a="1")
    world.pod(0, annotations={"a": "3"})
    await world.run()
    assert world.records["s-0"] == record(0, a="3")


@pytest.mark.parametrize(("api", "gates"), [(APPS, ""), (OURS, "StatefulSetStartOrdinal=true")])
async def test_row_24_ordinals_from_a_start(api: str, gates: str) -> None:
    world = World(gates=gates, nodes=8)
    world.workload(3, api=api, ordinals={"start": 5})
    world.pods(5, 6, 7, api=api)
    await world.run()
    world.no_pod(6)
    await world.run()
    assert sorted(world.records) == ["s-5", "s-6", "s-7"]


# Beyond the examples


async def test_the_apiserver_is_asked_before_records_go() -> None:
    world = World()
    world.workload(1, {})
    world.pods(0)
    world.by_hand()
    await world.run()
    world.no_workload(known=False)  # the mirror is late
    assert await world.run() == ["progressing ReadingTarget"]
    assert list(world.records) == ["s-0"]


async def test_the_apiserver_is_asked_before_one_is_deleted() -> None:
    world = await running()
    asking = dict(world.context.server)
    world.workload(3, {})
    world.context.server = asking  # the mirror holds an old version
    assert await world.run() == ["progressing ReadingTarget", "done Recorded"]
    assert world.state is not None


async def test_a_hand_made_one_is_never_deleted() -> None:
    world = World()
    world.workload(1, {})
    world.by_hand()
    await world.run()
    assert world.state is not None


async def test_a_terminating_workload_is_forgotten_at_once() -> None:
    world = await running()
    world.workload(3, deletionTimestamp="2026-03-01T12:00:00Z")
    assert await world.run() == ["waiting TargetTerminating"]
    assert world.records == {}


async def test_one_that_is_being_deleted_is_left_alone() -> None:
    world = await running()
    assert world.state is not None
    gone = {"name": "s", "namespace": "n", "deletionTimestamp": "2026-03-01T12:00:00Z"}
    world.put(PERSISTENT_POD_STATE, {"metadata": gone})
    assert await world.run() == ["progressing Deleting"]


SAME = {
    "requiredPersistentTopology": {"keys": [O]},
    "preferredPersistentTopology": [{"weight": 100, "preference": {"keys": [H]}}],
}


@pytest.mark.parametrize(
    ("spec", "writes"),
    [
        pytest.param({**SAME, "persistentPodStateRetentionPolicy": "WhenDeleted"}, False, id="equal: as it is"),
        pytest.param({"requiredPersistentTopology": {"keys": [Z]}}, True, id="different: replaced"),
    ],
)
async def test_one_that_openkruise_generated(spec: dict[str, Any], writes: bool) -> None:
    """It does not show what it was generated from."""
    world = World()
    world.workload(1)
    world.by_hand(**spec)
    assert bool(world.plan().stages) == writes
    await world.run()
    assert world.spec == PersistentPodStateSpec(
        target_ref=world.spec.target_ref,
        required_persistent_topology=Topology(keys=[O]),
        preferred_persistent_topology=[PreferredTopology(weight=100, preference=Topology(keys=[H]))],
        persistent_pod_state_retention_policy=spec.get("persistentPodStateRetentionPolicy", ""),
    )


async def test_of_two_namesakes_the_owner_wins() -> None:
    world = await running(1)
    world.workload(1, {AUTO: "true", REQUIRED: Z}, api=OURS)
    assert await world.run() == ["stuck GenerationConflict", "note Generated", "done Recorded"]
    assert world.spec.target_ref.api_version == APPS


async def test_a_namesake_of_another_workload_is_left_alone() -> None:
    world = World()
    world.workload(1)
    world.by_hand(target="other")
    assert "stuck GenerationConflict" in await world.run()
    assert world.spec.target_ref.name == "other"


async def test_another_one_is_about_the_workload_already() -> None:
    world = World()
    world.workload(1)
    world.by_hand("p2")
    assert await world.run() == ["stuck GenerationConflict"]
    assert world.state is None
    assert ("n", "s") in world.context.woken


async def test_a_workload_that_came_again_waits_for_the_collector() -> None:
    world = await running(1)
    world.no_workload()
    world.workload(1, uid="another")
    assert "stuck GenerationConflict" in await world.run()


async def test_a_kind_that_nobody_named() -> None:
    world = World()
    world.by_hand(api="games.io/v1")
    assert await world.run() == ["stuck TargetNotFollowed"]
