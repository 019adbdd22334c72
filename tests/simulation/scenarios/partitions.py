"""Partitions and the order of updates (cloneset.md §8.2, common.md §11)."""

from tests.simulation.scenarios.manifests import cloneset, image, label, rolling, running
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.steps import RemovePod, Wait

WEIGHTS = {"weightPriority": [{"weight": 50, "matchSelector": {"matchLabels": {"first": "yes"}}}]}
ZONE_A = [{"key": "zone", "value": "a"}]

SCENARIOS = (
    Scenario(
        name="partition-kept",
        given=running(cloneset(4, partition=3)),
        when=(image("two"),),
        then=End(pods={"one": 3, "two": 1}, status={"updatedReplicas": 1, "expectedUpdatedReplicas": 1}),
    ),
    Scenario(
        name="partition-kept-by-recreation",
        given=running(cloneset(4, partition="50%", policy="ReCreate")),
        when=(image("two"),),
        then=End(pods={"one": 2, "two": 2}, status={"updatedReplicas": 2}),
    ),
    Scenario(
        name="partition-moved-in-mid-roll",
        given=running(cloneset(4, partition=3)),
        when=(
            image("two"),
            Wait(image="two"),
            rolling(partition=2),
            Wait(image="two", matching=2),
            rolling(partition=1),
        ),
        then=End(pods={"one": 1, "two": 3}, status={"updatedReplicas": 3}),
    ),
    Scenario(
        name="partition-kept-while-old-pods-go",
        given=(*running(cloneset(4, partition=2)), image("two"), Wait(image="two", serving=2, matching=2)),
        when=(RemovePod(nth=0), RemovePod(nth=1), Wait(pods=4, serving=4)),
        then=End(pods={"one": 2, "two": 2}),
    ),
    Scenario(
        name="partition-raised-rolls-back",
        given=(*running(cloneset(3)), rolling(partition=1), image("two"), Wait(image="two", serving=2, matching=2)),
        when=(rolling(partition=3),),
        then=End(pods={"one": 3}, status={"updatedReplicas": 0}),
        gates="CloneSetPartitionRollback=true",
    ),
    Scenario(
        name="updated-by-priority",
        given=(*running(cloneset(3, partition=2, priorityStrategy=WEIGHTS)), label(1, first="yes")),
        when=(image("two"),),
        then=End(pods={"one": 2, "two": 1}),
    ),
    Scenario(
        name="updated-scattered",
        given=(*running(cloneset(4, partition=2, scatterStrategy=ZONE_A)), label(0, zone="a"), label(1, zone="a")),
        when=(image("two"),),
        then=End(pods={"one": 2, "two": 2}),
    ),
)
