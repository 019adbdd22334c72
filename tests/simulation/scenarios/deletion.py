"""Pods that go: chosen by users, deleted by them, failed, or lost with their node (cloneset.md §8.3)."""

from tests.simulation.scenarios.manifests import cloneset, image, label, running, spec
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.steps import ChangePod, LoseNode, NamePodsToDelete, RemovePod, ReturnNodes, Sleep, Wait

CHOSEN = {"apps.kruise.io/specified-delete": "true"}

SCENARIOS = (
    Scenario(
        name="chosen-by-label",
        given=running(cloneset(3)),
        when=(label(1, **CHOSEN),),
        then=End(pods={"one": 3}),
    ),
    Scenario(
        name="chosen-by-name",
        given=running(cloneset(4)),
        when=(NamePodsToDelete(nths=(0, 2), replicas=2),),
        then=End(pods={"one": 2}, status={"replicas": 2}),
    ),
    Scenario(
        name="chosen-in-mid-roll",
        given=running(cloneset(3)),
        when=(image("two"), Wait(image="two"), label(2, **CHOSEN)),
        then=End(pods={"two": 3}),
        exact=False,
    ),
    Scenario(
        name="deleted-by-users",
        given=running(cloneset(3)),
        when=(RemovePod(nth=0), RemovePod(nth=0)),
        then=End(pods={"one": 3}, status={"readyReplicas": 3}),
    ),
    Scenario(
        name="deleted-by-users-while-scaling-in",
        given=running(cloneset(4)),
        when=(RemovePod(nth=0), spec(replicas=2)),
        then=End(pods={"one": 2}),
        exact=False,
    ),
    Scenario(
        name="evicted",
        given=running(cloneset(3)),
        when=(ChangePod(nth=1, patch={"status": {"phase": "Failed", "reason": "Evicted"}}, subresource="status"),),
        then=End(pods={"one": 3}),
    ),
    Scenario(
        name="node-lost",
        given=running(cloneset(3)),
        when=(LoseNode(nth=0), Sleep(seconds=15), ReturnNodes()),
        then=End(pods={"one": 3}, status={"readyReplicas": 3}),
    ),
    Scenario(
        name="node-lost-in-mid-roll",
        given=running(cloneset(3)),
        when=(image("two"), Wait(image="two"), LoseNode(nth=2), Sleep(seconds=15), ReturnNodes()),
        then=End(pods={"two": 3}, status={"readyReplicas": 3}),
        exact=False,
    ),
)
