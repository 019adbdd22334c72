"""Claims: made with pods, kept, reused, and removed by the rules (cloneset.md §4.9)."""

from tests.simulation.scenarios.manifests import cloneset, container, running, spec
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.steps import RemovePod, Wait

REUSE = {"enablePVCReuse": True}

SCENARIOS = (
    Scenario(
        name="claims-made",
        given=running(cloneset(1, claims=True)),
        when=(spec(replicas=3),),
        then=End(pods={"one": 3}, claims=3),
        exact=False,  # a claim without a pod is cleaned up, or goes with its pod, as the fault falls
    ),
    Scenario(
        name="claim-taken-away-behind-a-partition",
        given=running(cloneset(2, claims=True)),
        when=(
            spec(
                replicas=3,
                volumeClaimTemplates=[],
                template={"spec": {"containers": [container("two")]}},
                updateStrategy={"rollingUpdate": {"partition": 3}},
            ),
        ),
        then=End(pods={"one": 3}, claims=3, revisions=2),
        exact=False,  # a claim without a pod is cleaned up, or goes with its pod, as the fault falls
    ),
    Scenario(
        name="claims-go-with-their-pods",
        given=running(cloneset(3, claims=True)),
        when=(spec(replicas=1),),
        then=End(pods={"one": 1}, claims=1),
        exact=False,  # a claim without a pod is cleaned up, or goes with its pod, as the fault falls
    ),
    Scenario(
        name="claims-reused",
        given=running(cloneset(2, claims=True, scale=REUSE)),
        when=(RemovePod(nth=0), Wait(pods=1), Wait(pods=2, serving=2)),
        then=End(pods={"one": 2}, claims=2),
    ),
    Scenario(
        name="claims-not-reused",
        given=running(cloneset(2, claims=True)),
        when=(RemovePod(nth=0), Wait(pods=1), Wait(pods=2, serving=2)),
        then=End(pods={"one": 2}, claims=2),
        exact=False,  # a claim without a pod is cleaned up, or goes with its pod, as the fault falls
    ),
)
