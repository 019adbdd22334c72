"""DaemonSets: nodes come and go, are relabelled and tainted, and do not answer (daemonset.md §4.2, §4.5)."""

from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.control.plan import Json
from tests.simulation.scenarios.daemonset import everywhere, in_daemons, on
from tests.simulation.scenarios.manifests import cordoned, daemonset, image, relabelled, rolling, tainted
from tests.simulation.scenarios.node_steps import AddNode, WaitStatus
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import Create, LoseNode, Remove, RemovePod, ReturnNodes, Sleep, Wait

IN_PLACE = "InPlaceIfPossible"
POOL: Json = {"nodeSelector": {"pool": "web"}}
MISSCHEDULED = WaitStatus(name="web", kind=DAEMON_SET.kind, least={"numberMisscheduled": 1})

SCENARIOS = in_daemons(
    Scenario(
        name="daemons-made-on-all-nodes",
        given=(tainted("node-2", "NoSchedule"), cordoned("node-3")),
        when=(Create(document=daemonset()), Wait(pods=2, serving=2), AddNode(name="node-4")),
        then=on(one="134"),
    ),
    Scenario(
        name="daemons-made-by-and-by",
        given=(AddNode(name="node-4"),),
        when=(
            Create(document=daemonset(partition=3, top={"scaleStrategy": {"partitionedScaling": True}})),
            *(Wait(pods=1, serving=1), rolling(partition="25%"), Wait(pods=3, serving=3)),
        ),
        then=on(one="123"),
    ),
    Scenario(
        name="nodes-come-and-go-in-mid-roll",
        given=(
            relabelled("node-1", pool="web"),
            relabelled("node-2", pool="web"),
            *everywhere(daemonset(nodes=POOL), 2),
        ),
        when=(
            *(image("two"), Wait(image="two"), relabelled("node-3", pool="web")),
            *(Remove(name="node-1", kind="Node"), AddNode(name="node-4", labels={"pool": "web"})),
            *(Wait(image="two", serving=3), relabelled("node-2", pool="other")),
        ),
        then=on(two="34"),
        exact=False,
    ),
    Scenario(
        name="nodes-tainted",
        given=everywhere(daemonset()),
        when=(
            *(tainted("node-1", "NoSchedule"), MISSCHEDULED, RemovePod(node="node-1"), Wait(pods=2)),
            *(tainted("node-2", "NoExecute"), Wait(pods=1), tainted("node-3", "NoSchedule"), cordoned("node-3")),
            *(Sleep(seconds=0.5), tainted("node-2"), Wait(pods=2)),
        ),
        then=on(one="23"),
        exact=False,  # others end pods on such nodes as well
    ),
    Scenario(
        name="node-silent-in-mid-roll",
        given=everywhere(daemonset(maxUnavailable=2)),  # of which the silent node uses up one
        when=(LoseNode(node="node-2"), Sleep(seconds=1.5), image("two"), Wait(image="two", serving=2), ReturnNodes()),
        then=on(two="123"),
        exact=False,
    ),
    Scenario(
        name="node-silent-while-its-pod-goes",
        given=everywhere(daemonset(maxUnavailable=2)),
        when=(
            *(LoseNode(node="node-3"), RemovePod(node="node-3"), Sleep(seconds=2), image("two")),
            *(Wait(image="two", serving=1), ReturnNodes()),
        ),
        then=on(two="123"),
        exact=False,
    ),
)
