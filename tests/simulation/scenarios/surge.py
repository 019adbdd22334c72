"""Surge: extra pods come first, and go last (cloneset.md §4.3)."""

from flotilla_common.control.plan import Json
from tests.simulation.scenarios.manifests import cloneset, image, label, rolling, running
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.steps import Wait

SURGE: Json = {"maxUnavailable": 0, "maxSurge": 1}

SCENARIOS = (
    Scenario(
        name="surged-in-place",
        given=running(cloneset(3, **SURGE)),
        when=(image("two"),),
        then=End(pods={"two": 3}, status={"updatedReadyReplicas": 3}),
    ),
    Scenario(
        name="surged-by-recreation",
        given=running(cloneset(3, policy="ReCreate", **SURGE)),
        when=(image("two"),),
        then=End(pods={"two": 3}, status={"updatedReadyReplicas": 3}),
    ),
    Scenario(
        name="surged-to-a-partition",
        given=running(cloneset(4, partition=2, **SURGE)),
        when=(image("two"),),
        then=End(pods={"one": 2, "two": 2}),
    ),
    Scenario(
        name="surged-for-a-chosen-pod",
        given=running(cloneset(3, **SURGE)),
        when=(label(0, **{"apps.kruise.io/specified-delete": "true"}), Wait(pods=4)),
        then=End(pods={"one": 3}),
    ),
    Scenario(
        name="surge-paused-in-mid-roll",
        given=running(cloneset(3, policy="ReCreate", **SURGE)),
        when=(image("two"), Wait(image="two", serving=1), rolling(paused=True), Wait(pods=3), rolling(paused=False)),
        then=End(pods={"two": 3}),
        exact=False,
    ),
)
