"""Updates of every type, with second thoughts in the middle (cloneset.md §8.2)."""

from tests.simulation.scenarios.manifests import cloneset, container, image, rolling, running, spec
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.steps import BreakImage, RemovePod, Sleep, Wait

DONE = {"updatedReplicas": 3, "updatedReadyReplicas": 3, "readyReplicas": 3}
ENVIRONMENT = spec(template={"spec": {"containers": [container("one") | {"env": [{"name": "A", "value": "b"}]}]}})

SCENARIOS = (
    Scenario(
        name="updated-in-place",
        given=running(cloneset(3)),
        when=(image("two"),),
        then=End(pods={"two": 3}, revisions=2, status=DONE),
    ),
    Scenario(
        name="recreated",
        given=running(cloneset(3, policy="ReCreate")),
        when=(image("two"),),
        then=End(pods={"two": 3}, revisions=2, status=DONE),
    ),
    Scenario(
        name="recreated-with-claims",
        given=running(cloneset(2, policy="ReCreate", claims=True)),
        when=(image("two"),),
        then=End(pods={"two": 2}, claims=2),
        exact=False,  # as with all claims that are not reused
    ),
    Scenario(
        name="recreated-because-the-environment-changed",
        given=running(cloneset(3)),
        when=(ENVIRONMENT,),
        then=End(pods={"one": 3}, revisions=2, status=DONE),
    ),
    Scenario(
        name="refused-in-place-only",
        given=running(cloneset(2, policy="InPlaceOnly")),
        when=(ENVIRONMENT,),
        then=End(pods={"one": 2}, status={"updatedReplicas": 0}),
        restless=True,
    ),
    Scenario(
        name="relabelled-in-place",
        given=running(cloneset(3)),
        when=(spec(template={"metadata": {"labels": {"tier": "front"}}}),),
        then=End(pods={"one": 3}, revisions=2, status=DONE),
    ),
    Scenario(
        name="updated-after-a-grace-period",
        given=running(cloneset(2, inPlaceUpdateStrategy={"gracePeriodSeconds": 2})),
        when=(image("two"),),
        then=End(pods={"two": 2}),
        timed=True,
        quiet=4,  # longer than the grace period
    ),
    Scenario(
        name="replaced-when-users-delete",
        given=running(cloneset(2, strategy="OnDelete")),
        when=(image("two"), Wait(observed=True), RemovePod(nth=0), Wait(pods=2, serving=1, image="two")),
        then=End(pods={"one": 1, "two": 1}, status={"updatedReplicas": 1}),
    ),
    Scenario(
        name="rolled-back-in-mid-roll",
        given=running(cloneset(3)),
        when=(image("two"), Wait(image="two"), image("one")),
        then=End(pods={"one": 3}, revisions=2, status=DONE),
        exact=False,
    ),
    Scenario(
        name="rolled-back-in-mid-recreation",
        given=running(cloneset(3, policy="ReCreate")),
        when=(image("two"), Wait(image="two", serving=1), image("one")),
        then=End(pods={"one": 3}, revisions=2, status=DONE),
        exact=False,
    ),
    Scenario(
        name="changed-twice-in-mid-roll",
        given=running(cloneset(3)),
        when=(image("two"), Wait(image="two"), image("three")),
        then=End(pods={"three": 3}, revisions=3, status=DONE),
        exact=False,
    ),
    Scenario(
        name="changed-while-kubelets-restart",
        given=running(cloneset(2, maxUnavailable=2)),
        when=(
            *(image("two"), Wait(image="two", matching=2), Sleep(seconds=0.1)),
            *(image("four"), Wait(image="four", matching=2), Sleep(seconds=0.15)),
            image("three"),
        ),
        then=End(pods={"three": 2}),
        exact=False,
    ),
    Scenario(
        name="paused-in-mid-roll",
        given=running(cloneset(3)),
        when=(image("two"), Wait(image="two"), rolling(paused=True)),
        then=End(pods={"one": 2, "two": 1}, status={"updatedReplicas": 1, "readyReplicas": 3}),
    ),
    Scenario(
        name="paused-from-the-start",
        given=running(cloneset(3, paused=True)),
        when=(image("two"), spec(replicas=4), Wait(pods=4, serving=4)),
        then=End(pods={"one": 3, "two": 1}, status={"updatedReplicas": 1}),
    ),
    Scenario(
        name="paused-and-resumed",
        given=running(cloneset(3)),
        when=(image("two"), Wait(image="two"), rolling(paused=True), Wait(serving=3), rolling(paused=False)),
        then=End(pods={"two": 3}, status=DONE),
    ),
    Scenario(
        name="stopped-by-a-broken-image",
        given=running(cloneset(3)),
        when=(BreakImage(image="two"), image("two"), Wait(image="two")),
        then=End(pods={"one": 2, "two": 1}, serving=2, status={"updatedReplicas": 1, "readyReplicas": 2}),
    ),
    Scenario(
        name="mended-after-a-broken-image",
        given=running(cloneset(3)),
        when=(BreakImage(image="two"), image("two"), Wait(image="two"), image("three")),
        then=End(pods={"three": 3}, status=DONE),
        exact=False,
    ),
)
