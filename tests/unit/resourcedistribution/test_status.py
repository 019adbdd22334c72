"""Counts and conditions (resourcedistribution.md §6)."""

from datetime import timedelta

import msgspec

from flotilla_common.api.kinds.resourcedistribution.types import (
    CONDITIONS,
    CONFLICT,
    CREATE_FAILED,
    DistributionCondition,
    ResourceDistribution,
    ResourceDistributionStatus,
)
from flotilla_common.api.meta import ObjectMeta
from flotilla_sidecar.resourcedistribution.status import status_of, stored_failures
from tests.unit.resourcedistribution.world import NOW, World, names

EARLIER = NOW - timedelta(hours=1)


def distribution(*conditions: DistributionCondition) -> ResourceDistribution:
    return ResourceDistribution(
        metadata=ObjectMeta(name="r", generation=4), status=ResourceDistributionStatus(conditions=list(conditions))
    )


def test_six_conditions_in_their_order() -> None:
    made = status_of(distribution(), 3, 1, {CONFLICT: {"b": "of b", "a": "of a"}}, NOW)
    assert (made.desired, made.succeeded, made.failed, made.observed_generation) == (3, 1, 2, 4)
    assert tuple(one.type for one in made.conditions) == CONDITIONS
    assert [(one.status, one.reason, one.failed_namespaces) for one in made.conditions] == [
        *[("False", "Succeeded", [])] * 4,
        ("True", "of b", ["a", "b"]),
        ("False", "Succeeded", []),
    ]
    assert {one.last_transition_time for one in made.conditions} == {NOW.replace(microsecond=0)}


def test_a_transition_is_a_change_of_the_status_only() -> None:
    before = [
        DistributionCondition(type=kind, status="False", last_transition_time=EARLIER, reason="Succeeded")
        for kind in CONDITIONS
    ]
    before[1] = msgspec.structs.replace(before[1], status="True", failed_namespaces=["a"], reason="old")
    made = status_of(distribution(*before), 2, 0, {CREATE_FAILED: {"b": "new"}, CONFLICT: {"a": "x"}}, NOW)
    assert made.conditions[1].last_transition_time == EARLIER
    assert (made.conditions[1].failed_namespaces, made.conditions[1].reason) == (["b"], "new")
    assert made.conditions[4].last_transition_time == NOW.replace(microsecond=0)
    assert made.conditions[0] == before[0]


def test_counts_of_nothing_are_left_out() -> None:
    made = msgspec.json.decode(msgspec.json.encode(status_of(distribution(), 0, 0, {}, NOW)))
    assert made.keys() == {"observedGeneration", "conditions"}
    assert made["conditions"][0] == {
        "type": "GetResourceFailed",
        "status": "False",
        "lastTransitionTime": "2026-03-01T12:00:00Z",
        "reason": "Succeeded",
    }


def test_what_the_status_knows_of_a_failure() -> None:
    found = distribution(
        DistributionCondition(type=CONFLICT, status="True", failed_namespaces=["a"], reason="conflict"),
        DistributionCondition(type=CREATE_FAILED, status="True", failed_namespaces=["b", "c"], reason="quota"),
    )
    assert stored_failures(found) == {CONFLICT: {"a": "conflict"}, CREATE_FAILED: {"b": "quota", "c": "quota"}}


def failing() -> World:
    world = World()
    world.refusals["create", "b"] = "exceeded quota"
    world.distribute(includedNamespaces=names("a", "b"))
    world.run()
    return world


def test_a_service_that_starts_does_not_forget_a_failure() -> None:
    """Its cache is empty, and unknown copies do not count as successes in between."""
    world = failing()
    before, written = world.status, world.statuses
    world.memory.clear()
    assert world.once() == ["CreateFailed", "Distributed"]
    assert (world.status, world.statuses) == (before, written)


def test_other_words_for_a_failure_are_no_transition() -> None:
    world = failing()
    before = world.status.conditions[1]
    world.refusals["create", "b"] = "exceeded it still"
    world.run()
    after = world.status.conditions[1]
    assert after == msgspec.structs.replace(before, reason="exceeded it still")


def test_a_failure_that_turned_into_another_is_told_as_that() -> None:
    world = failing()
    world.store("b", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    world.run()
    assert world.trouble == {4: ["b"]}
