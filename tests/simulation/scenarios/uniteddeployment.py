"""UnitedDeployments of every kind of workload: creation, scaling, updates, partitions, deletion.

The rules are in uniteddeployment.md §6 to §9.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from flotilla_common.api.documents import member
from flotilla_common.api.kinds.uniteddeployment.types import SUBSET_LABEL, UNITED_DEPLOYMENT
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, POD, REPLICA_SET, REVISION, Resource
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Frozen, Json
from tests.simulation.oracles.copies import controller
from tests.simulation.oracles.terms import Terms
from tests.simulation.oracles.united import TEMPLATES, SubsetWorkloads
from tests.simulation.oracles.united_end import FinalState, final_problems
from tests.simulation.scenarios.current_state import image_of
from tests.simulation.scenarios.manifests import template
from tests.simulation.scenarios.node_steps import WaitStatus
from tests.simulation.scenarios.scenario import OFTEN, SELDOM, Scenario
from tests.simulation.scenarios.steps import (
    NAMESPACE_NAME,
    BreakImage,
    Change,
    Create,
    Remove,
    Sleep,
    Stage,
    Step,
    Wait,
)
from tests.simulation.scenarios.united_steps import WaitRevisions, WaitSubsets

KIND = UNITED_DEPLOYMENT.kind
ZONE = "topology.kubernetes.io/zone"
CLONES, SETS, DEPLOYMENTS, BUILT_IN_SETS = TEMPLATES.values()


class Spread(Frozen):
    """The pods of each subset by image, and the number of revisions, in the final state.

    Everything else is as it must be at rest.
    """

    pods: dict[str, dict[str, int]]  # by subset, then by image
    revisions: int = 1
    status: Json = {}
    stuck: bool = False  # not all pods can be ready
    allocated: int | None = None  # replicas that subsets get, where that is not the total
    alone: bool = True  # all workloads of the namespace are the UnitedDeployment's
    exists: bool = True

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield the differences from the final state."""
        current = stage.current
        found: dict[str, Counter[str]] = {}
        for pod in current.pods(NAMESPACE_NAME):
            found.setdefault(pod.metadata.labels.get(SUBSET_LABEL, ""), Counter())[image_of(pod)] += 1
        if (pods := {subset: dict(images) for subset, images in found.items()}) != self.pods:
            yield f"pods are {pods}, not {self.pods}"
        united = current.get(kind, NAMESPACE_NAME, name)
        if (united is not None) != self.exists:
            yield f"{name} {'does not exist' if self.exists else 'still exists'}"
        if united is None:
            return
        uid, workloads = (
            united["metadata"]["uid"],
            [one for kind in TEMPLATES for one in current.all(kind, NAMESPACE_NAME)],
        )
        own = [one for one in workloads if controller(one) == uid]
        if self.alone and len(own) != len(workloads):
            yield f"{len(workloads) - len(own)} workloads are nobody's"
        revisions = [one for one in current.all(REVISION, NAMESPACE_NAME) if controller(one) == uid]
        if len(revisions) != self.revisions:
            yield f"there are {len(revisions)} revisions, not {self.revisions}"
        yield from final_problems(
            FinalState(
                united=united,
                children=own,
                pods=list(current.all(POD, NAMESPACE_NAME)),
                revisions=revisions,
                stuck=self.stuck,
                allocated=self.allocated,
            )
        )
        for key, value in self.status.items():
            if (told := member(united, "status").get(key)) != value:
                yield f"status.{key} is {told!r}, not {value!r}"


def united_terms(document: Json) -> Terms:
    """Return terms without rules for pods: they belong to the workloads."""
    spec = document["spec"]
    return Terms(
        selector=Selector.compile(msgspec.convert(spec["selector"], LabelSelector)),
        replicas=spec["replicas"],
        terminating="deletionTimestamp" in document["metadata"],
    )


def united(*subsets: Json, replicas: int = 4, image: str = "one", kind: str = CLONES, **spec: Any) -> Json:
    """Return a UnitedDeployment `web` of one kind of workloads, by default CloneSets.

    `schedule`: the strategy of its topology.
    """
    schedule = spec.pop("schedule", None)
    topology: Json = {"subsets": list(subsets)} | ({"scheduleStrategy": schedule} if schedule else {})
    return {
        "apiVersion": UNITED_DEPLOYMENT.api_version,
        "kind": KIND,
        "metadata": {"name": "web", "namespace": NAMESPACE_NAME},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {kind: {"metadata": {"labels": {"app": "web"}}, "spec": child_spec(kind, image)}},
            "topology": topology,
            **spec,
        },
    }


def child_spec(kind: str, image: str) -> Json:
    """Return the spec of the workloads, which update one pod after the other."""
    spec: Json = {"selector": {"matchLabels": {"app": "web"}}, "template": template(image)}
    if kind == CLONES:
        rolling = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1}
        return spec | {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}
    if kind == DEPLOYMENTS:
        return spec | {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}
    return spec


A, B, C = {"name": "a"}, {"name": "b"}, {"name": "c"}


def within(subset: Json, zone: str, **members: Any) -> Json:
    """Return the subset, on nodes of one zone (zone-0 to zone-2 exist)."""
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    return {**subset, "nodeSelectorTerm": term, **members}


def ready(document: Json) -> tuple[Step, ...]:
    """Create it, and wait until all its pods are ready."""
    replicas = document["spec"]["replicas"]
    least = {"readyReplicas": replicas, "updatedReadyReplicas": replicas}
    return Create(document=document), WaitStatus(name="web", kind=KIND, least=least)


def changed(**spec: Any) -> Change:
    """Change the spec."""
    return Change(patch={"spec": spec}, name="web", kind=KIND)


def other_image(image: str, kind: str = CLONES) -> Change:
    """Change the image of the template."""
    return changed(template={kind: {"spec": {"template": template(image)}}})


def with_subsets(*subsets: Json) -> Change:
    """Change the subsets of the topology."""
    return changed(topology={"subsets": list(subsets)})


def held_back(**partitions: int) -> Json:
    """Return the update strategy with these partitions of subsets."""
    return {"manualUpdate": {"partitions": partitions}}


def scaled(replicas: int) -> Change:
    """`kubectl scale`."""
    return Change(patch={"spec": {"replicas": replicas}}, name="web", kind=KIND, subresource="scale")


scenario = partial(Scenario, kind=KIND, services=("topology", "cloneset"), every=SELDOM)
of_sets = partial(scenario, services=("topology", "statefulset"))
of_built_in = partial(scenario, services=("topology",))

SCENARIOS = (
    scenario(
        name="united-comes",
        given=(),
        when=(Create(document=united(A, B, C, replicas=6)),),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 2}, "c": {"one": 2}}),
        every=OFTEN,
    ),
    of_sets(
        name="united-of-sets-comes",
        given=(),
        when=(Create(document=united(A, B, replicas=4, kind=SETS)),),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 2}}),
    ),
    of_sets(
        name="united-of-sets-updated",
        given=ready(united(A, B, kind=SETS, updateStrategy=held_back(a=1))),
        when=(other_image("two", SETS),),
        then=Spread(pods={"a": {"one": 1, "two": 1}, "b": {"two": 2}}, revisions=2),
        exact=False,
    ),
    of_built_in(
        name="united-of-deployments-comes",
        given=(),
        when=(Create(document=united(A, B, kind=DEPLOYMENTS)),),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 2}}),
    ),
    of_built_in(
        name="united-of-deployments-updated",
        given=ready(united(A, B, kind=DEPLOYMENTS, updateStrategy=held_back(a=1))),
        when=(other_image("two", DEPLOYMENTS), scaled(6)),
        then=Spread(pods={"a": {"two": 3}, "b": {"two": 3}}, revisions=2),
        exact=False,
    ),
    of_built_in(
        name="united-of-built-in-sets-comes",
        given=(),
        when=(Create(document=united(A, B, kind=BUILT_IN_SETS)),),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 2}}),
    ),
    of_built_in(
        name="united-of-built-in-sets-mended",
        given=(
            BreakImage(image="bad"),
            Create(document=united(A, B, image="bad", kind=BUILT_IN_SETS, updateStrategy=held_back(b=1))),
            WaitSubsets(pods={"a": 1, "b": 1}, serving=0),
        ),
        when=(other_image("two", BUILT_IN_SETS), Wait(), changed(updateStrategy=held_back(b=0))),
        then=Spread(pods={"a": {"two": 2}, "b": {"two": 2}}, revisions=2),
        exact=False,
    ),
    scenario(
        name="united-in-shares",
        given=(),
        when=(
            Create(document=united({**A, "replicas": 1}, {**B, "replicas": "50%"}, C, replicas=6)),
            WaitSubsets(pods={"a": 1, "b": 3, "c": 2}),
            scaled(2),
        ),
        then=Spread(pods={"a": {"one": 1}, "b": {"one": 1}}),
    ),
    scenario(
        name="united-between-bounds",
        given=ready(united({**A, "minReplicas": 1, "maxReplicas": 2}, {**B, "maxReplicas": 1}, C, replicas=5)),
        when=(scaled(2), WaitSubsets(pods={"a": 2}), scaled(6)),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 1}, "c": {"one": 3}}),
    ),
    scenario(
        name="united-updated",
        given=ready(united(A, B)),
        when=(other_image("two"),),
        then=Spread(pods={"a": {"two": 2}, "b": {"two": 2}}, revisions=2, status={"updatedReadyReplicas": 4}),
        exact=False,
        every=OFTEN,
    ),
    scenario(
        name="united-scaled-while-it-rolls",
        given=ready(united(A, B)),
        when=(
            other_image("two"),
            WaitSubsets(pods={"a": 2, "b": 2}, serving=0, image="two"),
            scaled(6),
            Sleep(seconds=0.3),
            scaled(2),
        ),
        then=Spread(pods={"a": {"two": 1}, "b": {"two": 1}}, revisions=2),
        exact=False,
    ),
    scenario(
        name="united-held-by-partitions",
        given=ready(united(A, B, updateStrategy=held_back(a=1, b=2))),
        when=(other_image("two"),),
        then=Spread(pods={"a": {"one": 1, "two": 1}, "b": {"one": 2}}, revisions=2, status={"updatedReplicas": 1}),
        exact=False,
    ),
    scenario(
        name="united-let-go-zone-by-zone",
        given=ready(united(A, B, updateStrategy=held_back(a=1, b=2))),
        when=(
            other_image("two"),
            WaitStatus(name="web", kind=KIND, least={"updatedReadyReplicas": 1}),
            changed(updateStrategy=held_back(a=0)),
            WaitStatus(name="web", kind=KIND, least={"updatedReadyReplicas": 2}),
            changed(updateStrategy=held_back(b=0)),
        ),
        then=Spread(pods={"a": {"two": 2}, "b": {"two": 2}}, revisions=2),
        exact=False,
    ),
    scenario(
        name="united-paused-in-mid-roll",
        given=ready(united(A, B)),
        when=(
            other_image("two"),
            WaitRevisions(count=6),
            changed(template={CLONES: {"spec": {"updateStrategy": {"rollingUpdate": {"paused": True}}}}}),
            WaitRevisions(count=9),
            changed(template={CLONES: {"spec": {"updateStrategy": {"rollingUpdate": {"paused": None}}}}}),
        ),
        then=Spread(pods={"a": {"two": 2}, "b": {"two": 2}}, revisions=3),
        exact=False,
    ),
    scenario(
        name="united-rolled-back",
        given=ready(united(A, B)),
        when=(
            other_image("two"),
            WaitSubsets(pods={"a": 2, "b": 2}, serving=0, image="two"),
            WaitRevisions(count=6),
            other_image("one"),
        ),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 2}}, revisions=2),
        exact=False,
    ),
    scenario(
        name="united-forgets-old-revisions",
        given=(
            *ready(united(A, revisionHistoryLimit=1, replicas=1)),
            other_image("two"),
            WaitStatus(name="web", kind=KIND, least={"updatedReadyReplicas": 1}),
        ),
        when=(other_image("three"), WaitSubsets(pods={"a": 1}, image="three"), other_image("four")),
        then=Spread(pods={"a": {"four": 1}}),
        exact=False,
    ),
    scenario(
        name="united-scaled",
        given=ready(united(A, B)),
        when=(changed(replicas=8),),
        then=Spread(pods={"a": {"one": 4}, "b": {"one": 4}}, status={"replicas": 8}),
    ),
    scenario(
        name="united-goes",
        given=ready(united(A, B)),
        when=(Remove(name="web", kind=KIND),),
        then=Spread(pods={}, exists=False),
        exact=False,  # who does not know yet that a CloneSet goes replaces its pods
    ),
)

TERMS = {UNITED_DEPLOYMENT: united_terms, REPLICA_SET: united_terms, BUILT_IN_STATEFUL_SET: united_terms}
RULES = (SubsetWorkloads,)
