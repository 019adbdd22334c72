"""UnitedDeployments whose pods find no node (uniteddeployment.md §7.4, §7.5, §10, §11).

They are moved to other subsets, or other subsets reserve pods for them.
"""

from functools import partial

from flotilla_common.control.plan import Json
from tests.simulation.scenarios.manifests import cordoned, relabelled
from tests.simulation.scenarios.scenario import OFTEN
from tests.simulation.scenarios.steps import Create, LoseNode, Remove, ReturnNodes, Sleep, Step
from tests.simulation.scenarios.united_steps import WaitSubsets
from tests.simulation.scenarios.uniteddeployment import (
    ZONE,
    A,
    B,
    C,
    Spread,
    changed,
    other_image,
    scaled,
    scenario,
    united,
    within,
)

NOWHERE = "zone-9"
"""No node is there, until one is relabelled."""

LONG = 600
"""Seconds for which a subset stays marked: until the end."""


def strategy(marked: int = LONG, *, reserve: bool = False) -> Json:
    """Return an adaptive strategy: pods without a node for a second are moved; `marked`: seconds of the mark."""
    settings = {"rescheduleCriticalSeconds": 1, "unschedulableDuration": marked, "reserveUnschedulablePods": reserve}
    return {"type": "Adaptive", "adaptive": settings}


def with_stuck_b(marked: int = LONG, replicas: int = 6) -> Json:
    """Two pods each for a and b, the rest for c; b has no nodes."""
    first, second = {**A, "maxReplicas": 2}, within(B, NOWHERE, maxReplicas=2)
    return united(first, second, C, replicas=replicas, schedule=strategy(marked))


def reserving(marked: int = 1, replicas: int = 3) -> Json:
    """All pods for a, which has no nodes; b stands in."""
    return united(within(A, NOWHERE), B, replicas=replicas, schedule=strategy(marked, reserve=True))


def standing_in(marked: int = 1) -> tuple[Step, ...]:
    """Three pods of a are reserved, and three of b serve."""
    return Create(document=reserving(marked)), WaitSubsets(pods={"a": 3, "b": 3}, serving=3)


OPEN = relabelled("node-3", **{ZONE: NOWHERE})
"""The zone has a node now."""

about_nodes = partial(scenario, timed=True, exact=False, uncertain=("maxUnavailable",))
"""Creates a timed scenario that ignores maxUnavailable: reserved pods change it together with other writes."""

SCENARIOS = (
    about_nodes(
        name="united-moves-stuck-pods",
        given=(),
        when=(Create(document=with_stuck_b()),),
        then=Spread(pods={"a": {"one": 2}, "c": {"one": 4}}),
        every=OFTEN,
    ),
    about_nodes(
        name="united-fills-what-has-recovered",
        given=(Create(document=with_stuck_b(marked=3)), WaitSubsets(pods={"a": 2, "c": 4})),
        when=(OPEN, Sleep(seconds=5), scaled(8)),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 2}, "c": {"one": 4}}),
    ),
    about_nodes(
        name="united-keeps-its-minimum",
        given=(),
        when=(
            Create(document=united(A, within(B, NOWHERE, minReplicas=1), replicas=3, schedule=strategy())),
            WaitSubsets(pods={"a": 2, "b": 1}, serving=2),
        ),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 1}}, stuck=True),
    ),
    about_nodes(
        name="united-leaves-a-node-that-goes",
        given=(
            Create(document=united(within(A, "zone-1"), within(B, "zone-2"), replicas=3, schedule=strategy())),
            WaitSubsets(pods={"a": 3}),
        ),
        when=(Remove(name="node-1", kind="Node"), WaitSubsets(pods={"b": 3})),
        then=Spread(pods={"b": {"one": 3}}),
    ),
    about_nodes(
        name="united-leaves-a-cordoned-node-when-it-rolls",
        given=(
            Create(document=united(within(A, "zone-1"), B, replicas=3, schedule=strategy())),
            WaitSubsets(pods={"a": 3}),
        ),
        when=(cordoned("node-1"), changed(replicas=5), WaitSubsets(pods={"a": 3, "b": 2}), other_image("two")),
        then=Spread(pods={"a": {"two": 3}, "b": {"two": 2}}, revisions=2),
    ),
    about_nodes(
        name="united-does-not-move-under-fixed",
        given=(),
        when=(Create(document=united(A, within(B, NOWHERE))), WaitSubsets(pods={"a": 2, "b": 2}, serving=2)),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 2}}, stuck=True),
        timed=False,
    ),
    about_nodes(
        name="united-has-pods-stood-in-for",
        given=(),
        when=(Create(document=reserving(marked=LONG)), WaitSubsets(pods={"a": 3, "b": 3}, serving=3)),
        then=Spread(pods={"a": {"one": 3}, "b": {"one": 3}}, stuck=True, allocated=6, status={"reservedPods": 3}),
    ),
    about_nodes(
        name="united-tries-reserved-pods",
        given=standing_in(),
        when=(OPEN, WaitSubsets(pods={"a": 3})),
        then=Spread(pods={"a": {"one": 3}}),
    ),
    about_nodes(
        name="united-scaled-with-reserved-pods",
        given=standing_in(marked=LONG),
        when=(scaled(5), WaitSubsets(pods={"a": 3, "b": 5}, serving=5), scaled(2)),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 2}}, stuck=True, allocated=4, status={"reservedPods": 2}),
    ),
    about_nodes(
        name="united-gets-a-subset-while-it-reserves",
        given=(OPEN, Create(document=reserving()), WaitSubsets(pods={"a": 3})),
        when=(
            changed(topology={"subsets": [within(A, NOWHERE, maxReplicas=2), C]}),
            WaitSubsets(pods={"a": 2, "c": 1}),
        ),
        then=Spread(pods={"a": {"one": 2}, "c": {"one": 1}}),
    ),
    about_nodes(
        name="united-gives-up-reserving",
        given=standing_in(marked=LONG),
        when=(changed(topology={"scheduleStrategy": strategy()}), WaitSubsets(pods={"b": 3})),
        then=Spread(pods={"b": {"one": 3}}, status={"reservedPods": None}),
    ),
    about_nodes(
        name="united-loses-a-node-while-it-reserves",
        given=(
            Create(document=united(within(A, "zone-1"), B, replicas=2, schedule=strategy(1, reserve=True))),
            WaitSubsets(pods={"a": 2}),
        ),
        when=(LoseNode(node="node-1", owner=""), Sleep(seconds=8), ReturnNodes(), WaitSubsets(pods={"a": 2})),
        then=Spread(pods={"a": {"one": 2}}),
    ),
)
