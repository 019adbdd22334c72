"""StatefulSets: claims, which outlive their pods unless the policy says otherwise (statefulset.md §4.9)."""

from collections.abc import Iterator

from flotilla_common.api.resources import CLAIM, POD, Resource
from flotilla_common.control.plan import Json
from tests.simulation.scenarios.manifests import claim_template, container, running, spec, statefulset
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.statefulset import in_sets
from tests.simulation.scenarios.steps import NAMESPACE_NAME, Change, ChangePod, Create, Remove, Stage, Step, Wait, until

KEEP: Json = {"whenScaled": "Retain", "whenDeleted": "Retain"}
SCALED: Json = {"whenScaled": "Delete", "whenDeleted": "Retain"}
BOTH: Json = {"whenScaled": "Delete", "whenDeleted": "Delete"}

CHOOSY = statefulset(1, claims=KEEP)
CHOOSY["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "fast"}
"""No node is good enough for its pod."""

MORE: Json = {**claim_template(), "metadata": {"name": "more"}}
HELD = "example.com/hold"
"""A finalizer: the pod ends, but is not removed before a step removes the finalizer."""


class Untied(Step):
    """Wait until no claim is tied to a pod."""

    async def play(self, stage: Stage) -> None:
        claims = stage.current
        await until(stage, lambda: not any(map(_is_tied, claims.all(CLAIM, NAMESPACE_NAME))), str(self))


class Marked(End):
    """The claims of the beginning are those of the end."""

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield the differences from the final state."""
        yield from super().problems(stage, name, kind)
        for claim in stage.current.all(CLAIM, NAMESPACE_NAME):
            if "marked" not in claim["metadata"].get("labels", {}):
                yield f"{claim['metadata']['name']} is another claim"


def _is_tied(claim: Json) -> bool:
    return any(owner["kind"] == POD.kind for owner in claim["metadata"].get("ownerReferences") or ())


def mark(name: str) -> Change:
    """Label a claim."""
    return Change(patch={"metadata": {"labels": {"marked": "yes"}}}, name=name, kind=CLAIM.kind)


SCENARIOS = in_sets(
    Scenario(
        name="set-scaled-in-and-out-while-a-pod-ends",
        given=(
            *running(statefulset(2, ordered=False, claims=SCALED)),
            *(mark("data-web-0"), mark("data-web-1")),
            ChangePod(nth=1, patch={"metadata": {"finalizers": [HELD]}}),
        ),
        when=(
            *(spec(replicas=1), Wait(pods=1), spec(replicas=2), Untied()),
            Change(patch={"metadata": {"finalizers": None}}, name="web-1", kind="Pod"),
        ),
        then=Marked(pods={"one": 2}, claims=2),
        exact=False,
    ),
    Scenario(
        name="set-given-another-claim",
        given=running(statefulset(2, claims=KEEP)),
        when=(spec(volumeClaimTemplates=[claim_template(), MORE]),),
        then=End(pods={"one": 2}, claims=4, revisions=1),
    ),
    Scenario(
        name="set-deprived-of-a-claim-behind-a-partition",
        given=running(statefulset(2, claims=KEEP, partition=5)),
        when=(spec(volumeClaimTemplates=[MORE], template={"spec": {"containers": [container("two")]}}, replicas=3),),
        then=End(pods={"one": 3}, claims=3, revisions=2),
    ),
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
