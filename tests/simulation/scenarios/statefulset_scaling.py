"""StatefulSets: scaling in order and in parallel, reserved ordinals, taken names (statefulset.md §8.1, §8.3)."""

from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Json
from tests.simulation.scenarios.manifests import answer, container, image, rolling, running, spec, statefulset
from tests.simulation.scenarios.refusals import QUOTA
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.statefulset import in_sets
from tests.simulation.scenarios.steps import BreakImage, Change, Create, Remove, Sleep, Wait
from tests.testkit.documents import typed

STRANGER: Json = typed(POD, "web-1", "shop", labels={"app": "mine"}, spec={"containers": [container("other")]})
"""Somebody's pod with a name that a set needs."""

HELD: Json = {"lifecycle": {"preDelete": {"labelsHandler": {"hold": "yes"}, "markPodNotReady": True}}}
CHECKED: Json = {"lifecycle": {"preNormal": {"labelsHandler": {"checked": "yes"}}}}

SCENARIOS = in_sets(
    Scenario(
        name="set-created-in-order",
        given=(),
        when=(Create(document=statefulset(3)),),
        then=End(pods={"one": 3}, revisions=1, status={"readyReplicas": 3, "updatedReplicas": 3}),
    ),
    Scenario(
        name="set-created-at-once",
        given=(),
        when=(Create(document=statefulset(3, ordered=False)),),
        then=End(pods={"one": 3}, revisions=1, status={"availableReplicas": 3}),
    ),
    Scenario(
        name="set-scaled-out-in-order",
        given=running(statefulset(1)),
        when=(spec(replicas=3),),
        then=End(pods={"one": 3}, names=("web-0", "web-1", "web-2")),
    ),
    Scenario(
        name="set-scaled-out-as-allowed",
        given=running(statefulset(1, ordered=False, scale=2)),
        when=(spec(replicas=4),),
        then=End(pods={"one": 4}),
    ),
    Scenario(
        name="set-scaled-in-in-order",
        given=running(statefulset(3)),
        when=(spec(replicas=1),),
        then=End(pods={"one": 1}, names=("web-0",), status={"replicas": 1}),
    ),
    Scenario(
        name="set-of-unready-pods-scaled-in-in-order",
        given=(
            BreakImage(image="two"),
            *running(statefulset(3, strategy="OnDelete")),
            image("two"),
            Wait(observed=True),
        ),
        when=(
            *(Remove(name="web-2", kind="Pod"), Wait(image="two", matching=1)),
            *(Remove(name="web-1", kind="Pod"), Wait(image="two", matching=2)),
            spec(replicas=0),
        ),
        then=End(pods={}, status={"replicas": 0}),
        exact=False,  # as it falls, new pods are deleted before they have their first condition
    ),
    Scenario(
        name="set-scaled-in-at-once",
        given=running(statefulset(4, ordered=False)),
        when=(spec(replicas=1),),
        then=End(pods={"one": 1}, names=("web-0",)),
    ),
    Scenario(
        name="set-scaled-out-and-in-again",
        given=running(statefulset(2)),
        when=(spec(replicas=4), Wait(pods=3), spec(replicas=1)),
        then=End(pods={"one": 1}, names=("web-0",)),
        exact=False,
    ),
    Scenario(
        name="ordinal-reserved-in-order",
        given=running(statefulset(3)),
        when=(spec(reserveOrdinals=[1]),),
        then=End(pods={"one": 3}, names=("web-0", "web-2", "web-3")),
    ),
    Scenario(
        name="ordinals-reserved-and-freed",
        given=running(statefulset(3, ordered=False)),
        when=(spec(reserveOrdinals=["0-1"]), Wait(pods=3), spec(reserveOrdinals=[1])),
        then=End(pods={"one": 3}, names=("web-0", "web-2", "web-3")),
        exact=False,
    ),
    Scenario(
        name="set-scaled-out-around-reserved-ordinals",
        given=running(statefulset(2, ordered=False, top={"reserveOrdinals": [1]})),
        when=(spec(replicas=6, reserveOrdinals=["1-2", 5]),),
        then=End(pods={"one": 6}, names=("web-0", "web-3", "web-4", "web-6", "web-7", "web-8")),
    ),
    Scenario(
        name="set-scaled-out-behind-a-partition",
        given=running(statefulset(4, ordered=False, partition=2, maxUnavailable=2)),
        when=(image("two"), Wait(image="two", matching=2, serving=2), rolling(partition=6), spec(replicas=9)),
        then=End(pods={"one": 4, "two": 5}),
    ),
    Scenario(
        name="set-scaled-out-behind-a-partition-of-any",
        given=running(statefulset(4, ordered=False, partition=3, maxUnavailable=2, unorderedUpdate={})),
        when=(image("two"), Wait(image="two", serving=1), rolling(partition=5), spec(replicas=9)),
        then=End(pods={"one": 5, "two": 4}),
    ),
    Scenario(
        name="ordinals-started-higher",
        given=running(statefulset(2)),
        when=(spec(ordinals={"start": 2}),),
        then=End(pods={"one": 2}, names=("web-2", "web-3")),
        gates="StatefulSetStartOrdinal=true",
    ),
    Scenario(
        name="set-held-before-deletion",
        given=running(statefulset(3, top=HELD, labels={"hold": "yes"})),
        when=(
            spec(replicas=1),
            *(Wait(state="PreparingDelete"), answer("PreparingDelete", hold=None), Wait(pods=2)),
            *(Wait(state="PreparingDelete"), answer("PreparingDelete", hold=None)),
        ),
        then=End(pods={"one": 1}),
    ),
    Scenario(
        name="set-deletion-cancelled",
        given=running(statefulset(2, ordered=False, top=HELD, labels={"hold": "yes"})),
        when=(spec(replicas=1), Wait(state="PreparingDelete"), spec(replicas=2)),
        then=End(pods={"one": 2}, status={"availableReplicas": 2}),
    ),
    Scenario(
        name="set-held-before-normal",
        given=(),
        when=(
            Create(document=statefulset(2, top=CHECKED)),
            *(Wait(pods=1, serving=1), answer("PreparingNormal", checked="yes"), Wait(pods=2, serving=2)),
            answer("PreparingNormal", checked="yes"),
        ),
        then=End(pods={"one": 2}, status={"availableReplicas": 2}),
    ),
    Scenario(
        name="name-held-by-a-stranger",
        given=(Create(document=STRANGER),),
        when=(Create(document=statefulset(3, ordered=False)), Sleep(seconds=3), Remove(name="web-1", kind="Pod")),
        then=End(pods={"one": 3}),
    ),
    Scenario(
        name="set-held-back-by-a-quota",
        given=(Create(document=QUOTA), *running(statefulset(2, ordered=False))),
        when=(
            *(spec(replicas=5), Sleep(seconds=3)),
            Change(patch={"spec": {"hard": {"pods": "5"}}}, name="few", kind="ResourceQuota"),
        ),
        then=End(pods={"one": 5}),
        quiet=8,  # nobody tells that there is room again: the next try comes when the back-off ends
    ),
)
