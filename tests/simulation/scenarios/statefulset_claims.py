"""StatefulSets: claims, which outlive their pods unless the policy says otherwise (statefulset.md §4.9)."""

from flotilla_common.control.plan import Json
from tests.simulation.scenarios.manifests import running, spec, statefulset
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.statefulset import in_sets
from tests.simulation.scenarios.steps import Change, Create, Remove, Wait

KEEP: Json = {"whenScaled": "Retain", "whenDeleted": "Retain"}
SCALED: Json = {"whenScaled": "Delete", "whenDeleted": "Retain"}
BOTH: Json = {"whenScaled": "Delete", "whenDeleted": "Delete"}

CHOOSY = statefulset(1, claims=KEEP)
CHOOSY["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "fast"}
"""No node is good enough for its pod."""

SCENARIOS = in_sets(
    Scenario(
        name="set-claims-kept",
        given=running(statefulset(2, ordered=False, claims=KEEP)),
        when=(spec(replicas=1), Wait(pods=1), spec(replicas=3)),
        then=End(pods={"one": 3}, claims=3),
        exact=False,
    ),
    Scenario(
        name="set-claims-scaled-away",
        given=running(statefulset(3, claims=BOTH)),
        when=(spec(replicas=1),),
        then=End(pods={"one": 1}, claims=1),
    ),
    Scenario(
        name="set-claims-scaled-away-and-made-again",
        given=running(statefulset(2, ordered=False, claims=SCALED)),
        when=(spec(replicas=1), Wait(pods=1), spec(replicas=2)),
        then=End(pods={"one": 2}, claims=2),
        exact=False,
    ),
    Scenario(
        name="set-claims-of-a-recreated-pod",
        given=running(statefulset(2, claims=SCALED)),
        when=(Remove(name="web-1", kind="Pod"),),
        then=End(pods={"one": 2}, claims=2),
    ),
    Scenario(
        name="set-claims-go-with-the-set",
        given=running(statefulset(2, claims=BOTH)),
        when=(Remove(),),
        then=End(pods={}, claims=0, revisions=0, exists=False),
        exact=False,  # who does not know yet that the set goes replaces its pods
    ),
    Scenario(
        name="set-claims-given-another-policy",
        given=running(statefulset(2, claims=KEEP)),
        when=(spec(persistentVolumeClaimRetentionPolicy=BOTH), Wait(observed=True), spec(replicas=1)),
        then=End(pods={"one": 1}, claims=1),
    ),
    Scenario(
        name="claim-lost-under-a-waiting-pod",
        given=(Create(document=CHOOSY), Wait(pods=1)),
        when=(
            Remove(name="data-web-0", kind="PersistentVolumeClaim"),
            Change(patch={"metadata": {"labels": {"disk": "fast"}}}, name="node-1", kind="Node"),
        ),
        then=End(pods={"one": 1}, claims=1),
    ),
)
