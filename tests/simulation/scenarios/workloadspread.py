"""WorkloadSpreads of CloneSets and other workloads: pods come and go, subsets change (workloadspread.md §5 to §8)."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

from flotilla_common.api.documents import mappings
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD
from flotilla_common.api.resources import DEPLOYMENT, POD, REPLICA_SET, Resource
from flotilla_common.control.plan import Frozen, Json
from flotilla_common.model.built_in import is_active
from flotilla_common.model.kubelet import is_ready
from tests.simulation.oracles.copies import controller
from tests.simulation.oracles.spread_end import FinalState, final_problems
from tests.simulation.oracles.spreads import Spreads, matched_of, resource_of
from tests.simulation.scenarios.manifests import cloneset, container, relabelled, running, statefulset, template
from tests.simulation.scenarios.scenario import OFTEN, SELDOM, Scenario
from tests.simulation.scenarios.steps import (
    NAMESPACE_NAME,
    QUOTA,
    Change,
    Create,
    EvictPod,
    Remove,
    RemovePod,
    Sleep,
    Stage,
    Step,
    Wait,
    WaitGone,
    until,
)

NAME, KIND = "spread", WORKLOAD_SPREAD.kind
ZONE, NOWHERE = "topology.kubernetes.io/zone", "zone-9"


class Placed(Frozen):
    """The pods of each subset by name in the final state; those of none under the empty name.

    Everything else is as it must be at rest.
    """

    subsets: dict[str, int]
    image: str = "one"  # of all pods
    exists: bool = True

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield the differences from the final state."""
        current = stage.current
        spread = current.get(kind, NAMESPACE_NAME, name)
        if (spread is not None) != self.exists:
            yield f"{name} {'does not exist' if self.exists else 'still exists'}"
        pods = list(current.all(POD, NAMESPACE_NAME))
        active = [pod for pod in pods if is_active(pod)]
        found = Counter((matched_of(pod) or ("", ""))[1] for pod in active)
        if found != Counter(self.subsets):
            yield f"subsets have {dict(found)} pods, not {self.subsets}"
        images = {one["image"] for pod in active for one in pod["spec"]["containers"]}
        if images - {container(self.image)["image"]}:
            yield f"pods have {sorted(images)}, not {self.image} alone"
        if unready := [pod["metadata"]["name"] for pod in active if not is_ready(pod)]:
            yield f"pods are not ready: {unready}"
        if spread is not None:
            resource = resource_of(spread)
            target = current.get(resource, NAMESPACE_NAME, spread["spec"]["targetRef"]["name"]) if resource else None
            replicas = target["spec"]["replicas"] if target else 0
            own = _own(stage, target, pods) if replicas else []
            yield from final_problems(FinalState(spread=spread, replicas=replicas, pods=own))


def _own(stage: Stage, target: Json | None, pods: list[Json]) -> list[Json]:
    """Return the pods of the workload."""
    uid = (target or {"metadata": {"uid": ""}})["metadata"]["uid"]
    sets = {one["metadata"]["uid"] for one in stage.current.all(REPLICA_SET, NAMESPACE_NAME) if controller(one) == uid}
    return [pod for pod in pods if controller(pod) in {uid, *sets}]


class WaitPlaced(Step):
    """Wait until subsets have exactly these numbers of active pods, with their costs, and the status counts them."""

    subsets: dict[str, int]

    async def play(self, stage: Stage) -> None:
        def reached() -> bool:
            pods = [pod for pod in stage.current.all(POD, NAMESPACE_NAME) if is_active(pod)]
            spread = stage.current.get(WORKLOAD_SPREAD, NAMESPACE_NAME, NAME) or {}
            told = {one["name"]: one["replicas"] for one in mappings(spread.get("status", {}).get("subsetStatuses"))}
            placed = Counter((matched_of(pod) or ("", ""))[1] for pod in pods) == Counter(self.subsets)
            return placed and all(told.get(name, 0) == count for name, count in self.subsets.items() if name)

        await until(stage, reached, str(self))


def spread(*subsets: Json, target: Resource = CLONE_SET, **spec: Any) -> Json:
    """Return a WorkloadSpread `spread` of the workload `web`."""
    reference = {"apiVersion": target.api_version, "kind": target.kind, "name": "web"}
    return {
        "apiVersion": WORKLOAD_SPREAD.api_version,
        "kind": KIND,
        "metadata": {"name": NAME, "namespace": NAMESPACE_NAME},
        "spec": {"targetRef": reference, "subsets": list(subsets), **spec},
    }


def subset(name: str, most: int | str | None = None, zone: str = "", **members: Any) -> Json:
    """Return a subset with a limit, in a zone if one is named."""
    limits = {} if most is None else {"maxReplicas": most}
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    return {"name": name, **limits, **({"requiredNodeSelector": term} if zone else {}), **members}


A, B = subset("a", 2), subset("b")
MARK = {"metadata": {"labels": {"elastic": "true"}}}


def deployment(replicas: int) -> Json:
    """Return a Deployment `web` that surges."""
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template("one")}
    strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    metadata = {"name": "web", "namespace": NAMESPACE_NAME}
    return {**DEPLOYMENT.type_meta, "metadata": metadata, "spec": spec | {"strategy": strategy}}


def spread_out(document: Json, *subsets: Json, placed: dict[str, int], **spec: Any) -> tuple[Step, ...]:
    """Create the WorkloadSpread, then the workload, and wait for its pods."""
    target = next(one for one in (CLONE_SET, STATEFUL_SET, DEPLOYMENT) if one.kind == document["kind"])
    replicas = document["spec"]["replicas"]
    pods = sum(placed.values())
    return (
        Create(document=spread(*subsets, target=target, **spec)),
        Create(document=document),
        Wait(pods=replicas, serving=pods, owner="web") if target != DEPLOYMENT else Sleep(seconds=2),
        WaitPlaced(subsets=placed),
    )


def workload(kind: Resource = CLONE_SET, **spec: Any) -> Change:
    """Change the workload's spec."""
    return Change(patch={"spec": spec}, kind=kind.kind)


def other_image(kind: Resource = CLONE_SET, image: str = "two") -> Change:
    """Its template gets another image."""
    return workload(kind, template={"spec": {"containers": [container(image)]}})


def with_subsets(*subsets: Json) -> Change:
    """Change the subsets of the WorkloadSpread."""
    return Change(patch={"spec": {"subsets": list(subsets)}}, name=NAME, kind=KIND)


SEEN = Wait(owner=NAME, observed=True)
"""The newest spec has been handled, and pods cost what they should."""


def adaptive(seconds: int = 1) -> Json:
    """Return an adaptive strategy: pods without a node for these seconds are moved."""
    return {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": seconds}}


def pods_at_most(count: int) -> Json:
    """Create a quota of the namespace."""
    metadata = {"name": "few", "namespace": NAMESPACE_NAME}
    return {**QUOTA.type_meta, "metadata": metadata, "spec": {"hard": {"pods": str(count)}}}


scenario = partial(
    Scenario,
    kind=KIND,
    workload=NAME,
    services=("topology", "cloneset"),
    every=SELDOM,
    exact=False,
    restorable=False,  # of a pod that is not there any more its place is kept for 30 seconds
    timed=True,  # places that are given away, and what goes, are noted with times that another process reads
)

SCENARIOS = (
    scenario(
        name="spread-comes-first",
        given=(Create(document=spread(A, subset("b", patch=MARK))),),
        when=(Create(document=cloneset(4)),),
        then=Placed(subsets={"a": 2, "b": 2}),
        every=OFTEN,
    ),
    scenario(
        name="spread-comes-later",
        given=running(cloneset(4)),
        when=(
            Create(document=spread(A, subset("b", patch=MARK))),
            WaitPlaced(subsets={"a": 2, "b": 2}),
            workload(replicas=5),
        ),
        then=Placed(subsets={"a": 2, "b": 3}),
    ),
    scenario(
        name="spread-scaled-out",
        given=spread_out(cloneset(3), A, B, placed={"a": 2, "b": 1}),
        when=(workload(replicas=6),),
        then=Placed(subsets={"a": 2, "b": 4}),
    ),
    scenario(
        name="spread-scaled-in",
        given=spread_out(cloneset(6), subset("a", 2), subset("b", 2), subset("c"), placed={"a": 2, "b": 2, "c": 2}),
        when=(workload(replicas=3),),
        then=Placed(subsets={"a": 2, "b": 1}),
    ),
    scenario(
        name="spread-scaled-to-and-fro",
        given=spread_out(cloneset(3), A, B, placed={"a": 2, "b": 1}),
        when=(workload(replicas=5), Wait(pods=5), workload(replicas=1), Wait(pods=1), workload(replicas=4)),
        then=Placed(subsets={"a": 2, "b": 2}),
        every=OFTEN,
    ),
    scenario(
        name="spread-updated-in-place",
        given=spread_out(cloneset(4), A, B, placed={"a": 2, "b": 2}),
        when=(other_image(),),
        then=Placed(subsets={"a": 2, "b": 2}, image="two"),
    ),
    scenario(
        name="spread-updated-by-recreation",
        given=spread_out(cloneset(4, policy="ReCreate"), A, B, placed={"a": 2, "b": 2}),
        when=(other_image(),),
        then=Placed(subsets={"a": 2, "b": 2}, image="two"),
        every=OFTEN,
    ),
    scenario(
        name="spread-scaled-while-it-rolls",
        given=spread_out(cloneset(4, policy="ReCreate"), A, B, placed={"a": 2, "b": 2}),
        when=(other_image(), Wait(image="two"), workload(replicas=5), Sleep(seconds=0.4), workload(replicas=6)),
        then=Placed(subsets={"a": 2, "b": 4}, image="two"),
    ),
    scenario(
        name="spread-loses-pods",
        given=spread_out(cloneset(4), A, B, placed={"a": 2, "b": 2}),
        when=(RemovePod(nth=0), RemovePod(nth=0), RemovePod(nth=1)),
        then=Placed(subsets={"a": 2, "b": 2}),
    ),
    scenario(
        name="spread-is-drained",
        given=spread_out(cloneset(4), A, B, placed={"a": 2, "b": 2}),
        when=(EvictPod(nth=0), EvictPod(nth=1), EvictPod(nth=0)),
        then=Placed(subsets={"a": 2, "b": 2}),
    ),
    scenario(
        name="spread-loses-pods-while-others-come",
        given=spread_out(cloneset(3), A, B, placed={"a": 2, "b": 1}),
        when=(workload(replicas=6), RemovePod(nth=0), Wait(pods=6), RemovePod(nth=0), RemovePod(nth=1)),
        then=Placed(subsets={"a": 2, "b": 4}),
        every=OFTEN,
    ),
    scenario(
        name="spread-without-room",
        given=(Create(document=spread(subset("a", 1), subset("b", 1))),),
        when=(Create(document=cloneset(3)),),
        then=Placed(subsets={"a": 1, "b": 1, "": 1}),
        uncertain=("affinity",),
    ),
    scenario(
        name="spread-takes-fewer",
        given=spread_out(cloneset(4), A, B, placed={"a": 2, "b": 2}),
        when=(with_subsets(subset("a", 1), B), SEEN, workload(replicas=3)),
        then=Placed(subsets={"a": 1, "b": 2}),
    ),
    scenario(
        name="spread-takes-more",
        given=spread_out(cloneset(3), subset("a", 1), B, placed={"a": 1, "b": 2}),
        when=(with_subsets(subset("a", 3), B), SEEN, workload(replicas=6)),
        then=Placed(subsets={"a": 3, "b": 3}),
    ),
    scenario(
        name="spread-loses-a-subset-and-uses-its-name-again",
        given=spread_out(cloneset(4), A, B, placed={"a": 2, "b": 2}),
        when=(
            with_subsets(subset("c", 1), B),
            SEEN,
            workload(replicas=5),
            Wait(pods=5, serving=5),
            with_subsets(subset("c", 1), A, B),
        ),
        then=Placed(subsets={"a": 2, "b": 2, "c": 1}),
    ),
    scenario(
        name="spread-renames-a-subset-while-pods-come",
        given=spread_out(cloneset(2), A, B, placed={"a": 2}),
        when=(workload(replicas=5), with_subsets(A, subset("c")), Wait(pods=5), SEEN, workload(replicas=2)),
        then=Placed(subsets={"a": 2}),
    ),
    scenario(
        name="spread-goes-elsewhere",
        given=(Create(document=spread(subset("a", 2, NOWHERE), B, scheduleStrategy=adaptive())),),
        when=(Create(document=cloneset(4)), WaitPlaced(subsets={"b": 4})),
        then=Placed(subsets={"b": 4}),
        every=OFTEN,
    ),
    scenario(
        name="spread-comes-back",
        given=spread_out(cloneset(3), subset("a", 2, NOWHERE), B, placed={"b": 3}, scheduleStrategy=adaptive()),
        when=(
            relabelled("node-3", **{ZONE: NOWHERE}),
            Change(patch={"spec": {"scheduleStrategy": None}}, name=NAME, kind=KIND),
            SEEN,
            workload(replicas=5),
        ),
        then=Placed(subsets={"a": 2, "b": 3}),
    ),
    scenario(
        name="spread-comes-again",
        given=spread_out(cloneset(3), A, B, placed={"a": 2, "b": 1}),
        when=(Remove(name=NAME, kind=KIND), Create(document=spread(A, B)), SEEN, workload(replicas=5)),
        then=Placed(subsets={"a": 2, "b": 3}),
    ),
    scenario(
        name="spread-goes",
        given=spread_out(cloneset(3), A, B, placed={"a": 2, "b": 1}),
        when=(workload(replicas=5), Wait(pods=5), Remove(name=NAME, kind=KIND)),
        then=Placed(subsets={"a": 2, "b": 3}, exists=False),
    ),
    scenario(
        name="spread-of-a-workload-that-comes-again",
        given=spread_out(cloneset(3), A, B, placed={"a": 2, "b": 1}),
        when=(
            Remove(kind=CLONE_SET.kind, propagation="Foreground"),
            WaitGone(kind=CLONE_SET.kind),
            Create(document=cloneset(4)),
        ),
        then=Placed(subsets={"a": 2, "b": 2}),
    ),
    scenario(
        name="spread-under-a-quota",
        given=(Create(document=spread(subset("a", 9), B)), Create(document=pods_at_most(2))),
        when=(
            Create(document=cloneset(4)),
            Sleep(seconds=3),
            Change(patch={"spec": {"hard": {"pods": "9"}}}, name="few", kind=QUOTA.kind),
            Wait(pods=4),
            Sleep(seconds=35),  # what was admitted and never came is given up
        ),
        then=Placed(subsets={"a": 4}),
    ),
    scenario(
        name="spread-in-shares",
        given=(Create(document=spread(subset("a", "50%"), B)),),
        when=(Create(document=cloneset(3)),),
        then=Placed(subsets={"a": 2, "b": 1}),
    ),
    scenario(
        name="spread-of-a-set",
        given=(Create(document=spread(subset("a", 1), subset("b", 1), subset("c"), target=STATEFUL_SET)),),
        when=(
            Create(document=statefulset(4, ordered=False)),
            Wait(pods=4, serving=4),
            Remove(name="web-1", kind="Pod"),
            workload(STATEFUL_SET, replicas=3),
        ),
        then=Placed(subsets={"a": 1, "b": 1, "c": 1}),
        services=("topology", "statefulset"),
    ),
    scenario(
        name="spread-of-a-deployment-updated",
        given=spread_out(deployment(4), A, B, placed={"a": 2, "b": 2}),
        when=(other_image(DEPLOYMENT),),
        then=Placed(subsets={"a": 2, "b": 2}, image="two"),
        services=("topology",),
    ),
    scenario(
        name="spread-of-a-deployment-rolled-back",
        given=spread_out(deployment(3), A, B, placed={"a": 2, "b": 1}),
        when=(
            other_image(DEPLOYMENT),
            Sleep(seconds=3),
            WaitPlaced(subsets={"a": 2, "b": 1}),
            workload(DEPLOYMENT, replicas=4),
            other_image(DEPLOYMENT, "one"),
            Sleep(seconds=31),  # a pod that came and went while nobody looked is waited for
            workload(DEPLOYMENT, replicas=5),
        ),
        then=Placed(subsets={"a": 2, "b": 3}),
        services=("topology",),
    ),
)

RULES = (Spreads,)
