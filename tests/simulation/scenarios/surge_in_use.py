"""Large surges, and changes in their middle (cloneset.md §4.3).

A surge in use stays until old pods are gone, and a change applies at once.
"""

import msgspec

from flotilla_common.control.plan import Json
from tests.simulation.scenarios.manifests import cloneset, container, image, rolling, running, spec
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.steps import Change, Wait

FOREVER = 2147483646
"""minReadySeconds as rollout controllers set it for blue-green: no pod becomes available before they say so."""

EVERY = 12
"""The ordinary sweep tries each so-many-th fault: the points are those of other updates."""

DOUBLED: Json = {"maxUnavailable": 0, "maxSurge": "100%"}


def held(name: str) -> Change:
    """Another image, and no pod is available until it is let go."""
    return spec(minReadySeconds=FOREVER, template={"spec": {"containers": [container(name)]}})


LET_GO = spec(minReadySeconds=0)
BOTH = (held("two"), Wait(pods=10, image="two", matching=5, serving=5))
"""All old and all new pods."""


def surged(*scenarios: Scenario) -> tuple[Scenario, ...]:
    """Scenarios of which the sweep tries few faults."""
    return tuple(msgspec.structs.replace(one, every=EVERY) for one in scenarios)


SCENARIOS = surged(
    Scenario(
        name="blue-beside-green",
        given=running(cloneset(5, policy="ReCreate", **DOUBLED)),
        when=(held("two"),),
        then=End(pods={"one": 5, "two": 5}, status={"updatedReadyReplicas": 5}),
    ),
    Scenario(
        name="blue-beside-green-in-one-pass",
        given=running(cloneset(3, policy="ReCreate", **DOUBLED)),
        when=(held("two"),),
        then=End(pods={"one": 3, "two": 3}),
    ),
    Scenario(
        name="blue-to-green",
        given=running(cloneset(5, policy="ReCreate", **DOUBLED)),
        when=(*BOTH, LET_GO),
        then=End(pods={"two": 5}, status={"updatedAvailableReplicas": 5}),
    ),
    Scenario(
        name="blue-to-green-to-another-green",
        given=running(cloneset(5, policy="ReCreate", **DOUBLED)),
        when=(*BOTH, image("three")),
        then=End(pods={"one": 5, "three": 5}),
        exact=False,
    ),
    Scenario(
        name="blue-to-green-to-another-green-in-place",
        given=running(cloneset(5, **DOUBLED)),
        when=(*BOTH, image("three")),
        then=End(pods={"one": 5, "three": 5}),
    ),
    Scenario(
        name="blue-to-green-and-back",
        given=running(cloneset(5, policy="ReCreate", **DOUBLED)),
        when=(*BOTH, image("one")),
        then=End(pods={"one": 5}),
        exact=False,
    ),
    Scenario(
        name="surge-raised-in-mid-roll",
        given=running(cloneset(5, policy="ReCreate", maxUnavailable=0, maxSurge=1)),
        when=(
            *(held("two"), Wait(pods=6, image="two", serving=1)),
            *(rolling(maxSurge="60%"), Wait(pods=8, image="two", matching=3, serving=3), rolling(maxSurge="100%")),
        ),
        then=End(pods={"one": 5, "two": 5}),
    ),
    Scenario(
        name="surge-and-replicas-changed-in-mid-roll",
        given=running(cloneset(5, policy="ReCreate", **DOUBLED)),
        when=(
            *(held("two"), Wait(pods=10), spec(replicas=7), Wait(pods=12)),
            *(spec(replicas=4), Wait(image="two"), LET_GO),
        ),
        then=End(pods={"two": 4}),
        exact=False,
    ),
    Scenario(
        name="surge-lowered-in-mid-roll",
        given=running(cloneset(5, policy="ReCreate", **DOUBLED)),
        when=(
            *(*BOTH, rolling(maxSurge=1), Wait(pods=6)),
            *(rolling(maxUnavailable=1, maxSurge=0), Wait(pods=5), LET_GO),
        ),
        then=End(pods={"two": 5}),
        exact=False,
    ),
)
