"""Many namespaces: the number of writes at once and in total, and their order."""

import pytest

from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS
from tests.unit.resourcedistribution.world import ALL, World

MANY = [f"n-{number:03}" for number in range(MAX_CHAINS_PER_PASS + 50)]


def many() -> World:
    world = World()
    for name in MANY:
        world.add_namespace(name, crowd="yes")
    return world


CROWD = {"namespaceSelector": {"matchLabels": {"crowd": "yes"}}}


def test_each_copy_costs_one_write_and_rest_costs_none() -> None:
    world = many()
    world.distribute(**CROWD)
    world.run()
    assert sorted(world.tried) == [("create", name) for name in MANY]
    assert world.counts == (len(MANY), len(MANY), 0)
    assert world.statuses <= 3
    before = len(world.tried), world.statuses
    for _ in range(3):
        world.once()
    assert (len(world.tried), world.statuses) == before


def test_a_pass_writes_only_so_many() -> None:
    world = many()
    world.distribute(**CROWD)
    made = world.plan()
    assert [len(stage.chains) for stage in made.stages] == [MAX_CHAINS_PER_PASS]
    assert not made.urgent_status
    world.once()
    assert world.plan().urgent_status


def test_failures_keep_nobody_waiting() -> None:
    world = many()
    for name in MANY[:MAX_CHAINS_PER_PASS]:
        world.refusals["create", name] = "no"
    world.distribute(**CROWD)
    world.run()
    assert world.copies() == MANY[MAX_CHAINS_PER_PASS:]
    assert world.trouble == {1: MANY[:MAX_CHAINS_PER_PASS]}


def test_a_stage_goes_on_after_a_failure() -> None:
    world = World()
    world.distribute(allNamespaces=True)
    (stage,) = world.plan().stages
    assert (stage.stop_on_failure, stage.slow_start) == (False, 0)
    assert [chain[0].namespace for chain in stage.chains] == list(ALL)


@pytest.mark.parametrize(("count", "shown"), [(3, "a, b, c"), (7, "a, b, c, d, e and 2 more")])
def test_reasons_name_a_few(count: int, shown: str) -> None:
    world = World()
    for name in "efg":
        world.add_namespace(name)
    world.distribute(includedNamespaces={"list": [{"name": name} for name in "abcdefg"[:count]]})
    world.run()
    (reason,) = world.plan().reasons
    assert (reason.state, reason.message) == ("done", f"the copy is up to date in {shown}")
    assert world.plan().numbers == {"desired": count, "succeeded": count, "failed": 0}
