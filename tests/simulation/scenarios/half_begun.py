"""In-place updates of many pods at once, for replicas that crash in the middle.

Some pods are out of service by then and have not got their image. A pod that is given back uses up maxUnavailable
until it is Ready again.
"""

from collections.abc import Sequence

from flotilla_common.control.plan import Json
from tests.simulation.scenarios.daemonset import everywhere, in_daemons, on
from tests.simulation.scenarios.manifests import cloneset, daemonset, image, label, rolling, running, statefulset
from tests.simulation.scenarios.node_steps import AddNode
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.statefulset import in_sets
from tests.simulation.scenarios.steps import Step, Wait

IN_PLACE = "InPlaceIfPossible"
NODES = "123456"
EVERY = 12
"""The ordinary sweep tries each so-many-th fault: with fewer pods it tries all of them."""

LABELLED = tuple(label(number, ring="a" if number < 3 else "b") for number in range(6))


def _first(ring: str) -> Json:
    """Pods of this ring are updated before all others."""
    return {"weightPriority": [{"weight": 50, "matchSelector": {"matchLabels": {"ring": ring}}}]}


def _interrupted(**changes: object) -> Sequence[Step]:
    """Begin updates, and pause until it is seen and half-begun ones are undone. Then continue.

    Further changes are other settings of the continued update.
    """
    pause = rolling(paused=True), Wait(observed=True), rolling(paused=False, **changes)
    return image("two"), Wait(begun=1), *pause


SIX_DAEMONS = (
    *(AddNode(name=f"node-{number}") for number in NODES[3:]),
    *everywhere(daemonset(policy=IN_PLACE, maxUnavailable=3), len(NODES)),
)

SCENARIOS = (
    Scenario(
        name="many-updated-at-once",
        given=running(cloneset(6, maxUnavailable=3)),
        when=(image("two"),),
        then=End(pods={"two": 6}),
        every=EVERY,
    ),
    Scenario(
        name="many-interrupted-at-once",
        given=(*running(cloneset(6, maxUnavailable=3, priorityStrategy=_first("a"))), *LABELLED),
        when=(*_interrupted(priorityStrategy=_first("b")),),
        then=End(pods={"two": 6}),
        exact=False,
        every=EVERY,
    ),
    *in_sets(
        Scenario(
            name="set-many-updated-at-once",
            given=running(statefulset(6, ordered=False, policy=IN_PLACE, maxUnavailable=3)),
            when=(image("two"),),
            then=End(pods={"two": 6}),
            exact=False,  # what has half begun may be undone, and begins anew
        ),
        Scenario(
            name="set-many-interrupted-at-once",
            given=(*running(statefulset(6, ordered=False, policy=IN_PLACE, maxUnavailable=3)), *LABELLED),
            when=(*_interrupted(unorderedUpdate={"priorityStrategy": _first("a")}),),
            then=End(pods={"two": 6}),
            exact=False,
        ),
    ),
    *in_daemons(
        Scenario(
            name="daemons-many-updated-at-once",
            given=SIX_DAEMONS,
            when=(image("two"),),
            then=on(two=NODES),
            exact=False,
        ),
        Scenario(
            name="daemons-many-interrupted-at-once",
            given=SIX_DAEMONS,
            when=(*_interrupted(),),
            then=on(two=NODES),
            exact=False,
        ),
    ),
)
