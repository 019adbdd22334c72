"""DaemonSets: single pods that are held, fail, are let go or taken in (daemonset.md §4.4, §4.6, §4.7)."""

from flotilla_common.api.keys import SPECIFIED_DELETE_LABEL
from flotilla_common.control.plan import Json
from tests.simulation.scenarios.daemonset import everywhere, in_daemons, on
from tests.simulation.scenarios.manifests import answer, container, daemonset, image, rolling, tainted
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import ChangePod, Create, Remove, Sleep, Wait, WaitGone

HELD: Json = {"lifecycle": {"preDelete": {"labelsHandler": {"hold": "yes"}, "markPodNotReady": True}}}
FAILS: Json = {"status": {"phase": "Failed", "reason": "Evicted"}}
STRAY: Json = {"metadata": {"labels": {"app": "mine"}}}


def failed(node: str) -> ChangePod:
    """Let the pod of a node fail."""
    return ChangePod(node=node, patch=FAILS, subresource="status")


def orphan(node: str) -> Create:
    """Create a pod without an owner that the DaemonSet selects, on a node."""
    metadata = {"name": f"mine-{node}", "namespace": "shop", "labels": {"app": "web"}}
    return Create(
        document={
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"nodeName": node, "containers": [container("zero")]},
        }
    )


def chosen(node: str) -> ChangePod:
    """Mark the pod of a node for deletion, as a user."""
    return ChangePod(node=node, patch={"metadata": {"labels": {SPECIFIED_DELETE_LABEL: "true"}}})


SCENARIOS = in_daemons(
    Scenario(
        name="daemons-chosen-by-the-user",
        given=everywhere(daemonset(partition=2)),
        when=(image("two"), Wait(image="two"), chosen("node-1"), chosen("node-2"), Wait(image="two", serving=3)),
        then=on(two="123"),
        exact=False,
    ),
    Scenario(
        name="daemons-held-before-they-go",
        given=everywhere(daemonset(labels={"hold": "yes"}, top=HELD)),
        when=(
            *(image("two"), Wait(state="PreparingDelete"), answer("PreparingDelete", hold=None)),
            *(Wait(image="two", serving=1), Wait(state="PreparingDelete"), rolling(paused=True)),
            *(answer("PreparingDelete", hold=None), Wait(image="two", matching=2, serving=2)),
        ),
        then=on(one="1", two="23"),
        exact=False,
    ),
    Scenario(
        name="daemons-that-fail",
        given=everywhere(daemonset()),
        when=(
            *(failed("node-2"), Sleep(seconds=0.6), failed("node-2"), Sleep(seconds=0.2)),
            *(image("two"), Wait(image="two", matching=3, serving=3)),
        ),
        then=on(two="123"),
        exact=False,
        timed=True,
        quiet=4,
    ),
    Scenario(
        name="daemons-let-go-and-taken-in",
        given=(orphan("node-1"), tainted("node-3", "NoSchedule")),
        when=(
            *(Create(document=daemonset(maxUnavailable=2)), Wait(pods=2, serving=2, image="one", matching=2)),
            *(ChangePod(node="node-2", patch=STRAY), Wait(pods=2, serving=2)),
        ),
        then=on(one="12", loose=1),
        exact=False,
    ),
    Scenario(
        name="daemons-orphaned-and-made-again",
        given=everywhere(daemonset()),
        when=(Remove(propagation="Orphan"), WaitGone(), Create(document=daemonset())),
        then=on(one="123", revisions=1),
        exact=False,
    ),
    Scenario(
        name="daemons-deleted-in-mid-roll",
        given=everywhere(daemonset()),
        when=(image("two"), Wait(image="two"), Remove(propagation="Foreground")),
        then=on(gone=True, revisions=0),
        exact=False,
    ),
)
