"""The cost of a rollout in writes per pod (architecture.md §1.5)."""

import pytest

from tests.unit.cloneset.build import CloneSetBuilder, cloneset, template
from tests.unit.cloneset.world import World

CREATED = ("create", "patch status")
IN_PLACE = ("patch status", "patch", "patch status")
RECREATED = ("patch", "delete")


def running(builder: CloneSetBuilder) -> World:
    """Return a world with all pods on the first template, available."""
    world = World(builder.template(template("nginx:1")))
    world.settle()
    assert world.available() == builder.spec["replicas"]
    return world


@pytest.mark.parametrize("replicas", [1, 5, 300])
def test_a_created_pod_costs_two_writes(replicas: int) -> None:
    world = running(cloneset().replicas(replicas))
    assert world.write_counts() == {CREATED: replicas}


@pytest.mark.parametrize(
    "builder",
    [
        pytest.param(cloneset().replicas(5).max_unavailable(2), id="maxUnavailable 2"),
        pytest.param(cloneset().replicas(5).max_unavailable("100%"), id="all at once"),
        pytest.param(cloneset().replicas(300).max_unavailable("50%"), id="large"),
        pytest.param(cloneset().replicas(5).partition(2), id="partition"),
    ],
)
@pytest.mark.parametrize("only", [False, True], ids=["InPlaceIfPossible", "InPlaceOnly"])
def test_an_in_place_update_costs_three_writes(builder: CloneSetBuilder, only: bool) -> None:
    world = running(builder.in_place(only=only))
    names = set(world.objects["Pod"])
    world.change(builder.template(template("nginx:2")))
    world.settle()
    assert set(world.objects["Pod"]) == names
    replicas, partition = builder.spec["replicas"], int(world.last.numbers["partition"])
    assert world.updated() == replicas - partition
    assert world.write_counts() == {
        key: count for key, count in {CREATED + IN_PLACE: replicas - partition, CREATED: partition}.items() if count
    }


@pytest.mark.parametrize(
    "builder",
    [
        pytest.param(cloneset().replicas(5).max_unavailable(2), id="maxUnavailable 2"),
        pytest.param(cloneset().replicas(200).max_unavailable("50%"), id="large"),
    ],
)
def test_a_recreated_pod_costs_four_writes(builder: CloneSetBuilder) -> None:
    world = running(builder)
    world.change(builder.template(template("nginx:2")))
    world.settle()
    replicas = builder.spec["replicas"]
    assert world.updated() == world.available() == replicas
    assert world.write_counts() == {CREATED + RECREATED: replicas, CREATED: replicas}


def test_with_surge_the_last_old_pods_need_no_mark() -> None:
    builder = cloneset().replicas(5).max_unavailable(0).max_surge(2)
    world = running(builder)
    world.change(builder.template(template("nginx:2")))
    world.settle()
    assert world.updated() == world.available() == 5
    assert world.write_counts() == {CREATED + RECREATED: 3, (*CREATED, "delete"): 2, CREATED: 5}


def test_surge_in_place_costs_no_more() -> None:
    builder = cloneset().replicas(5).partition(3).max_unavailable(0).max_surge("20%").in_place()
    world = running(builder)
    world.change(builder.template(template("nginx:2")))
    world.settle()
    assert (world.updated(), world.available()) == (2, 5)
    assert world.write_counts() == {CREATED: 4, (*CREATED, *IN_PLACE): 1, (*CREATED, "delete"): 1}
