"""Scaling: more pods, fewer pods, and minds that change on the way (cloneset.md §8.3)."""

from tests.simulation.scenarios.manifests import cloneset, image, running, spec
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.steps import Create, Sleep, Wait

SCENARIOS = (
    Scenario(
        name="created",
        given=(),
        when=(Create(document=cloneset(3)),),
        then=End(pods={"one": 3}, revisions=1, status={"readyReplicas": 3, "updatedReplicas": 3}),
    ),
    Scenario(
        name="scaled-out",
        given=running(cloneset(2)),
        when=(spec(replicas=4),),
        then=End(pods={"one": 4}, revisions=1, status={"replicas": 4, "readyReplicas": 4}),
    ),
    Scenario(
        name="scaled-in",
        given=running(cloneset(4)),
        when=(spec(replicas=2),),
        then=End(pods={"one": 2}, status={"replicas": 2, "readyReplicas": 2}),
    ),
    Scenario(
        name="scaled-to-nothing",
        given=running(cloneset(3)),
        when=(spec(replicas=0),),
        then=End(pods={}, status={"replicas": 0}),
    ),
    Scenario(
        name="scaled-out-one-by-one",
        given=running(cloneset(1, scale={"maxUnavailable": 1})),
        when=(spec(replicas=3),),
        then=End(pods={"one": 3}),
    ),
    Scenario(
        name="scaled-out-and-in-again",
        given=running(cloneset(2)),
        when=(spec(replicas=4), Wait(pods=4), spec(replicas=1)),
        then=End(pods={"one": 1}),
        exact=False,
    ),
    Scenario(
        name="scaled-in-and-out-again",
        given=running(cloneset(4)),
        when=(spec(replicas=1), Wait(pods=1), spec(replicas=3)),
        then=End(pods={"one": 3}),
    ),
    Scenario(
        name="available-after-a-while",
        given=running(cloneset(2, top={"minReadySeconds": 2}, policy="ReCreate")),
        when=(Sleep(seconds=4), image("two")),
        then=End(pods={"two": 2}, status={"availableReplicas": 2, "updatedAvailableReplicas": 2}),
        timed=True,
    ),
)
