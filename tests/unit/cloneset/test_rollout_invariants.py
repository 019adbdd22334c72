"""Invariants of every rollout, for all settings and orders of readiness (hypothesis drives `World`)."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.cloneset.build import CloneSetBuilder, cloneset, template
from tests.unit.cloneset.world import World, is_available

POLICIES = ("ReCreate", "InPlaceIfPossible", "InPlaceOnly")


@st.composite
def specs(draw: st.DrawFn) -> CloneSetBuilder:
    builder = cloneset().replicas(draw(st.integers(0, 8)))
    policy = draw(st.sampled_from(POLICIES))
    surge = 0 if policy == "InPlaceOnly" else draw(st.integers(0, 3))
    unavailable = draw(st.integers(0 if surge else 1, 4))
    partition: Any = draw(st.one_of(st.integers(0, 8), st.sampled_from(("0%", "30%", "99%"))))
    builder.max_unavailable(unavailable).max_surge(surge).partition(partition)
    builder.spec["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"] = policy
    return builder


def limits(world: World) -> tuple[int, int]:
    numbers = world.last.numbers
    return numbers["replicas"] - numbers["maxUnavailable"], numbers["replicas"] + numbers["maxSurge"]


def checked_pass(world: World) -> None:
    """Run one pass, and check that it takes no more availability and creates no more pods than allowed."""
    available, total = world.available(), len(world.pods)
    world.reconcile()
    floor, ceiling = limits(world)
    assert world.available() >= min(available, floor), world.last.reasons
    assert len(world.pods) <= max(total, ceiling), world.last.reasons


def converge(world: World, data: st.DataObject, rounds: int = 12) -> None:
    """Run some passes in which pods become ready in any order, then passes in which all do."""
    for _ in range(rounds):
        checked_pass(world)
        names = sorted(world.objects["Pod"])
        lucky = data.draw(st.integers(0, 2 ** len(names) - 1))
        world.tick({name for index, name in enumerate(names) if lucky >> index & 1})
    for _ in range(80):
        before = world.version
        checked_pass(world)
        world.tick()
        if world.version == before:
            return
    raise AssertionError(f"never settles: {world.last.reasons}")


def at_rest(world: World) -> None:
    numbers = world.last.numbers
    assert len(world.pods) == world.available() == numbers["replicas"]
    assert world.updated() >= numbers["replicas"] - numbers["partition"]
    assert all(is_available(pod) for pod in world.pods)


@settings(max_examples=50, deadline=None)
@given(builder=specs(), data=st.data())
def test_a_rollout_keeps_its_limits_and_ends(builder: CloneSetBuilder, data: st.DataObject) -> None:
    world = World(builder.template(template("nginx:1")))
    converge(world, data)
    at_rest(world)
    world.change(builder.template(template("nginx:2")))
    converge(world, data)
    at_rest(world)
    assert world.updated() == world.last.numbers["expectedUpdated"]


@settings(max_examples=25, deadline=None)
@given(builder=specs(), data=st.data())
def test_there_and_back_again(builder: CloneSetBuilder, data: st.DataObject) -> None:
    world = World(builder.template(template("nginx:1")))
    converge(world, data)
    first = world.status["updateRevision"]
    world.change(builder.template(template("nginx:2")))
    for _ in range(3):
        checked_pass(world)
        world.tick()
    world.change(builder.template(template("nginx:1")))
    converge(world, data)
    at_rest(world)
    assert world.status["updateRevision"] == world.status["currentRevision"] == first


@settings(max_examples=25, deadline=None)
@given(builder=specs(), replicas=st.integers(0, 8), data=st.data())
def test_scaling_in_the_middle_of_a_rollout(builder: CloneSetBuilder, replicas: int, data: st.DataObject) -> None:
    world = World(builder.template(template("nginx:1")))
    converge(world, data)
    world.change(builder.template(template("nginx:2")))
    for _ in range(3):
        checked_pass(world)
        world.tick()
    world.change(builder.replicas(replicas))
    converge(world, data)
    at_rest(world)


@settings(max_examples=25, deadline=None)
@given(builder=specs(), data=st.data())
def test_a_broken_image_stops_the_rollout_and_its_repair_ends_it(builder: CloneSetBuilder, data: st.DataObject) -> None:
    world = World(builder.template(template("nginx:1")))
    converge(world, data)
    world.broken.add("nginx:2")
    world.change(builder.template(template("nginx:2")))
    for _ in range(20):
        checked_pass(world)
        world.tick()
    assert world.available() >= limits(world)[0]
    world.change(builder.template(template("nginx:3")))
    converge(world, data)
    at_rest(world)
