"""StatefulSets: updates of every type, with second thoughts in the middle (statefulset.md §8.2)."""

from flotilla_common.control.plan import Json
from tests.simulation.scenarios.manifests import answer, image, label, rolling, running, spec, statefulset
from tests.simulation.scenarios.predownload import GATE
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.statefulset import in_sets
from tests.simulation.scenarios.steps import BreakImage, Create, Remove, Sleep, Wait

IN_PLACE = "InPlaceIfPossible"
CHOSEN = {"apps.kruise.io/specified-delete": "true"}
FIRST: Json = {"weightPriority": [{"weight": 50, "matchSelector": {"matchLabels": {"first": "yes"}}}]}
DONE = {"updatedReplicas": 3, "updatedReadyReplicas": 3, "currentReplicas": 3}
HOOKED: Json = {"lifecycle": {"inPlaceUpdate": {"labelsHandler": {"hold": "yes"}}}}

SCENARIOS = in_sets(
    Scenario(
        name="set-recreated-in-order",
        given=running(statefulset(3)),
        when=(image("two"),),
        then=End(pods={"two": 3}, revisions=2, status=DONE),
    ),
    Scenario(
        name="set-recreated-behind-a-partition",
        given=running(statefulset(4, ordered=False, maxUnavailable=2, partition=1)),
        when=(image("two"),),
        then=End(pods={"one": 1, "two": 3}, status={"updatedReplicas": 3, "currentReplicas": 1}),
    ),
    Scenario(
        name="set-recreated-by-priority",
        given=(
            *running(statefulset(4, ordered=False, partition=2, unorderedUpdate={"priorityStrategy": FIRST})),
            label(1, first="yes"),
        ),
        when=(image("two"),),
        then=End(pods={"one": 2, "two": 2}),
    ),
    Scenario(
        name="set-updated-in-place",
        given=running(statefulset(4, ordered=False, policy=IN_PLACE, maxUnavailable=2)),
        when=(image("two"),),
        then=End(pods={"two": 4}, revisions=2, status={"updatedReadyReplicas": 4}),
    ),
    Scenario(
        name="set-updated-in-place-after-a-grace-period",
        given=running(statefulset(2, policy=IN_PLACE, inPlaceUpdateStrategy={"gracePeriodSeconds": 2})),
        when=(image("two"),),
        then=End(pods={"two": 2}),
        exact=False,  # one that has half begun is undone, and begins anew
        timed=True,
        quiet=4,  # longer than the grace period
    ),
    Scenario(
        name="set-pulled-before-it-is-updated",
        given=running(statefulset(4, ordered=False, policy=IN_PLACE)),
        when=(image("two"),),
        then=End(pods={"two": 4}, revisions=2, status={"updatedReadyReplicas": 4}),
        gates=GATE,
        exact=False,  # as it falls, pods are updated before the pull is begun, or it is begun twice
    ),
    Scenario(
        name="set-held-before-update",
        given=running(statefulset(2, policy=IN_PLACE, top=HOOKED, labels={"hold": "yes"})),
        when=(
            image("two"),
            *(Wait(state="PreparingUpdate"), answer("PreparingUpdate", hold=None)),
            *(Wait(state="Updated"), answer("Updated", hold="yes")),
            *(Wait(state="PreparingUpdate"), answer("PreparingUpdate", hold=None)),
            *(Wait(state="Updated"), answer("Updated", hold="yes")),
        ),
        then=End(pods={"two": 2}, status={"availableReplicas": 2}),
        exact=False,
    ),
    Scenario(
        name="set-rolled-back-in-mid-roll",
        given=running(statefulset(3, policy=IN_PLACE)),
        when=(image("two"), Wait(image="two"), image("one")),
        then=End(pods={"one": 3}, revisions=2, status=DONE),
        exact=False,
    ),
    Scenario(
        name="set-broken-update-rolled-back",
        given=(BreakImage(image="two"), *running(statefulset(3))),
        when=(image("two"), Wait(image="two"), image("one")),
        then=End(pods={"one": 3}, revisions=2, status=DONE),
        exact=False,  # as it falls, the pod is made of the old template at once
    ),
    Scenario(
        name="set-broken-from-the-start",
        given=(BreakImage(image="one"), Create(document=statefulset(3)), Wait(pods=1)),
        when=(image("two"),),
        then=End(pods={"two": 3}, revisions=2, status=DONE),
    ),
    Scenario(
        name="set-broken-at-once-and-mended",
        given=(BreakImage(image="one"), Create(document=statefulset(4, ordered=False)), Wait(pods=4)),
        when=(image("two"),),
        then=End(pods={"two": 4}, revisions=2),
    ),
    Scenario(
        name="set-changed-twice-in-mid-recreation",
        given=running(statefulset(3, ordered=False, maxUnavailable=2)),
        when=(image("two"), Wait(image="two"), image("three")),
        then=End(pods={"three": 3}, status=DONE),
        exact=False,
    ),
    Scenario(
        name="set-paused-in-mid-roll",
        given=running(statefulset(3, partition=2)),
        when=(
            *(image("two"), Wait(image="two", serving=1)),
            *(rolling(paused=True), rolling(partition=0), spec(replicas=4), Wait(pods=4)),
        ),
        then=End(pods={"one": 2, "two": 2}, status={"updatedReplicas": 2}),
    ),
    Scenario(
        name="set-updated-when-users-delete",
        given=running(statefulset(3, ordered=False, strategy="OnDelete")),
        when=(image("two"), Wait(observed=True), Remove(name="web-1", kind="Pod"), Wait(image="two", serving=1)),
        then=End(pods={"one": 2, "two": 1}, status={"updatedReplicas": 1}),
    ),
    Scenario(
        name="pod-chosen-in-mid-roll",
        given=running(statefulset(3, ordered=False, partition=2)),
        when=(image("two"), Wait(image="two"), label(0, **CHOSEN)),
        then=End(pods={"one": 2, "two": 1}),
    ),
    Scenario(
        name="set-available-after-a-while",
        given=running(statefulset(2, minReadySeconds=2)),
        when=(Sleep(seconds=4), image("two")),
        then=End(pods={"two": 2}, status={"availableReplicas": 2, "updatedAvailableReplicas": 2}),
        timed=True,
        quiet=4,  # longer than the pods take to become available
    ),
    Scenario(
        name="set-history-forgotten",
        given=running(statefulset(1, top={"revisionHistoryLimit": 1})),
        when=(image("two"), Wait(image="two", serving=1), image("three")),
        then=End(pods={"three": 1}, revisions=2),
        exact=False,
    ),
)
