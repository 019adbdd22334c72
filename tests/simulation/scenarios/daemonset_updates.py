"""DaemonSets: rolling updates of every type, with second thoughts in the middle (daemonset.md §4.8, §8)."""

from flotilla_common.control.plan import Json
from tests.simulation.scenarios.daemonset import everywhere, in_daemons, on
from tests.simulation.scenarios.manifests import daemonset, image, relabelled, rolling, spec
from tests.simulation.scenarios.node_steps import AddNode
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import BreakImage, RemovePod, Sleep, Wait

IN_PLACE = "InPlaceIfPossible"
CANARY: Json = {"matchLabels": {"ring": "canary"}}
OTHER_ENV = spec(
    template={
        "spec": {
            "containers": [
                {"name": "main", "image": "registry.test/shop:two", "env": [{"name": "LEVEL", "value": "debug"}]}
            ]
        }
    }
)

FIVE = (AddNode(name="node-4"), AddNode(name="node-5"))
"""Two nodes more than there are."""

SCENARIOS = in_daemons(
    Scenario(
        name="daemons-replaced-by-share",
        given=(AddNode(name="node-4"), *everywhere(daemonset(maxUnavailable="30%"), 4)),
        when=(image("two"),),
        then=on(two="1234", revisions=2),
    ),
    Scenario(
        name="daemons-broken-by-one-image-after-the-other",
        given=(BreakImage(image="two"), BreakImage(image="three"), *everywhere(daemonset(maxUnavailable=1))),
        when=(image("two"), Wait(image="two"), image("three"), Wait(image="three"), image("four")),
        then=on(four="123", revisions=4),
        exact=False,  # as it falls, a broken pod is not made any more
    ),
    Scenario(
        name="daemons-updated-in-place",
        given=everywhere(daemonset(policy=IN_PLACE, maxUnavailable=2)),
        when=(image("two"),),
        then=on(two="123", revisions=2),
    ),
    Scenario(
        name="daemons-not-to-be-updated-in-place",
        given=everywhere(daemonset(maxUnavailable=2)),
        when=(rolling(rollingUpdateType=IN_PLACE), image("two"), Wait(image="two", matching=3, serving=3), OTHER_ENV),
        then=on(two="123", revisions=3),
        exact=False,
    ),
    Scenario(
        name="daemons-surged",
        given=everywhere(daemonset(maxSurge="50%", maxUnavailable=0)),
        when=(image("two"),),
        then=on(two="123", revisions=2),
    ),
    Scenario(
        name="daemons-surged-and-available-after-a-while",
        given=everywhere(daemonset(maxSurge=1, maxUnavailable=0, top={"minReadySeconds": 2})),
        when=(
            Sleep(seconds=4),
            image("two"),
            Wait(image="two"),
            rolling(paused=True),
            Sleep(seconds=4),
            rolling(paused=False),
        ),
        then=on(two="123", revisions=2),
        exact=False,
        timed=True,
        quiet=4,  # longer than the pods take to become available
    ),
    Scenario(
        name="daemons-surged-everywhere-and-changed-twice",
        given=(*FIVE, *everywhere(daemonset(maxSurge="100%", maxUnavailable=0), 5)),
        when=(image("two"), Wait(image="two", matching=2), image("three")),
        then=on(three="12345"),
        exact=False,
    ),
    Scenario(
        name="daemons-surged-behind-a-partition",
        given=(*FIVE, *everywhere(daemonset(maxSurge=1, maxUnavailable=0, partition=2), 5)),
        when=(image("two"), Wait(pods=6), rolling(maxSurge="100%")),
        then=on(one="12", two="345"),
        exact=False,
    ),
    Scenario(
        name="daemons-of-a-canary",
        given=everywhere(daemonset(policy=IN_PLACE, selector=CANARY, partition=2)),
        when=(
            *(image("two"), Wait(observed=True), relabelled("node-2", ring="canary"), Wait(image="two", serving=1)),
            *(relabelled("node-1", ring="canary"), relabelled("node-2", ring=None), rolling(partition=1)),
        ),
        then=on(two="12", one="3", revisions=2),
    ),
    Scenario(
        name="daemons-behind-a-partition",
        given=(AddNode(name="node-4"), *everywhere(daemonset(partition="75%"), 4)),
        when=(image("two"), Wait(image="two", serving=1), rolling(partition=2)),
        then=on(one="12", two="34", revisions=2),
    ),
    Scenario(
        name="daemons-paused-in-mid-roll",
        given=everywhere(daemonset()),
        when=(
            *(image("two"), Wait(image="two", serving=1), rolling(paused=True), RemovePod(node="node-1")),
            *(Wait(image="two", matching=2, serving=2), rolling(paused=False)),
        ),
        then=on(two="123"),
        exact=False,
    ),
    Scenario(
        name="daemons-rolled-back-in-mid-roll",
        given=everywhere(daemonset(policy=IN_PLACE)),
        when=(image("two"), Wait(image="two", matching=2), image("one")),
        then=on(one="123", revisions=2),
        exact=False,
    ),
    Scenario(
        name="daemons-changed-twice-in-mid-roll",
        given=everywhere(daemonset(maxUnavailable=2, top={"revisionHistoryLimit": 0})),
        when=(image("two"), Wait(image="two"), image("three")),
        then=on(three="123", revisions=1),
        exact=False,
    ),
    Scenario(
        name="daemons-updated-when-users-delete",
        given=everywhere(daemonset(strategy="OnDelete")),
        when=(image("two"), Wait(observed=True), RemovePod(node="node-2"), Wait(image="two", serving=1)),
        then=on(one="13", two="2"),
    ),
)
