"""Owners: deleted in every way, followed by namesakes, and in each other's way (common.md §7.8)."""

from tests.simulation.scenarios.manifests import cloneset, image, label, running
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.steps import Create, Remove, Wait, WaitGone

# Who does not know yet that an owner goes replaces its pods, and garbage collection takes them: ends are compared only.
GONE = End(pods={}, claims=0, revisions=0, exists=False)
NAMESAKE = Create(document=cloneset(2, image="two"))
RIVAL = cloneset(2, name="rival")
RIVAL["spec"]["selector"] = {"matchLabels": {"app": "web"}}
RIVAL["spec"]["template"]["metadata"]["labels"] = {"app": "web"}

SCENARIOS = (
    Scenario(name="owner-deleted", given=running(cloneset(3, claims=True)), when=(Remove(),), then=GONE, exact=False),
    Scenario(
        name="owner-deleted-in-the-foreground",
        given=running(cloneset(3)),
        when=(Remove(propagation="Foreground"),),
        then=GONE,
        exact=False,
    ),
    Scenario(
        name="owner-deleted-in-mid-roll",
        given=running(cloneset(3, policy="ReCreate")),
        when=(image("two"), Wait(image="two"), Remove()),
        then=GONE,
        exact=False,
    ),
    Scenario(
        name="pods-orphaned",
        given=running(cloneset(2)),
        when=(Remove(propagation="Orphan"),),
        then=End(pods={}, loose=2, exists=False),
        exact=False,
    ),
    Scenario(
        name="followed-by-a-namesake",
        given=running(cloneset(2)),
        when=(Remove(), WaitGone(), NAMESAKE, Wait(image="two", matching=2, serving=2)),
        then=End(pods={"two": 2}),
        exact=False,
    ),
    Scenario(
        name="orphans-left-alone-by-a-namesake",
        given=running(cloneset(2)),
        when=(Remove(propagation="Orphan"), WaitGone(), NAMESAKE, Wait(image="two", matching=2, serving=2)),
        then=End(pods={"two": 2}, loose=2),
        exact=False,
    ),
    Scenario(
        name="pod-let-go",
        given=running(cloneset(3)),
        when=(label(1, app="mine"),),
        then=End(pods={"one": 3}, loose=1),
    ),
    Scenario(
        name="two-sets-of-one-selector",
        given=running(cloneset(2)),
        when=(Create(document=RIVAL), Wait(pods=2, serving=2, owner="rival"), image("two")),
        then=End(pods={"two": 2}),
    ),
)
