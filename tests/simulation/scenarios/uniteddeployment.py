"""UnitedDeployments of CloneSets: subsets come, are updated, change shares, go (uniteddeployment.md §6 to §9)."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.uniteddeployment.types import SUBSET_LABEL, UNITED_DEPLOYMENT
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.resources import REVISION, Resource
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Frozen, Json
from tests.simulation.oracles.terms import Terms
from tests.simulation.scenarios.manifests import template
from tests.simulation.scenarios.node_steps import WaitStatus
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.sight import image_of
from tests.simulation.scenarios.steps import NAMESPACE_NAME, Change, Create, Remove, Stage, Step

KIND = UNITED_DEPLOYMENT.kind


class Spread(Frozen):
    """How many pods of which image each subset has in the end, and how many workloads and revisions there are."""

    pods: dict[str, dict[str, int]]  # by subset, then by image
    revisions: int = 1
    status: Json = {}
    exists: bool = True

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """How what there is differs."""
        sight = stage.sight
        found: dict[str, Counter[str]] = {}
        for pod in sight.pods(NAMESPACE_NAME):
            found.setdefault(pod.metadata.labels.get(SUBSET_LABEL, ""), Counter())[image_of(pod)] += 1
        if (pods := {subset: dict(images) for subset, images in found.items()}) != self.pods:
            yield f"pods are {pods}, not {self.pods}"
        subsets = sorted(one["metadata"]["labels"][SUBSET_LABEL] for one in sight.all(CLONE_SET, NAMESPACE_NAME))
        united = sight.get(kind, NAMESPACE_NAME, name)
        if (united is not None) != self.exists:
            yield f"{name} {'does not exist' if self.exists else 'still exists'}"
        wanted = sorted(one["name"] for one in united["spec"]["topology"]["subsets"]) if united else []
        if subsets != wanted:
            yield f"the workloads are those of {subsets}, not of {wanted}"
        owned = [one for one in sight.all(REVISION, NAMESPACE_NAME) if _owner(one) == kind.kind]
        if len(owned) != self.revisions:
            yield f"there are {len(owned)} revisions, not {self.revisions}"
        status: Json = (united or {}).get("status", {})
        for member, value in self.status.items():
            if status.get(member) != value:
                yield f"status.{member} is {status.get(member)!r}, not {value!r}"


def _owner(document: Json) -> str:
    references: list[Json] = document["metadata"].get("ownerReferences", [])
    return next((one["kind"] for one in references if one.get("controller")), "")


def united_terms(document: Json) -> Terms:
    """What may be asked of the controller: its pods are its workloads' business."""
    spec = document["spec"]
    return Terms(
        selector=Selector.compile(msgspec.convert(spec["selector"], LabelSelector)),
        replicas=spec["replicas"],
        terminating="deletionTimestamp" in document["metadata"],
    )


def united(*subsets: Json, replicas: int = 4, image: str = "one", **spec: Any) -> Json:
    """A UnitedDeployment `web` of CloneSets."""
    rolling = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1}
    cloneset = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": template(image),
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
    }
    return {
        "apiVersion": UNITED_DEPLOYMENT.api_version,
        "kind": KIND,
        "metadata": {"name": "web", "namespace": NAMESPACE_NAME},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"cloneSetTemplate": {"metadata": {"labels": {"app": "web"}}, "spec": cloneset}},
            "topology": {"subsets": list(subsets)},
            **spec,
        },
    }


A, B, C = {"name": "a"}, {"name": "b"}, {"name": "c"}


def ready(document: Json) -> tuple[Step, ...]:
    """It exists, and all its pods are ready."""
    replicas = document["spec"]["replicas"]
    least = {"readyReplicas": replicas, "updatedReadyReplicas": replicas}
    return Create(document=document), WaitStatus(name="web", kind=KIND, least=least)


def changed(**spec: Any) -> Change:
    """The spec is changed."""
    return Change(patch={"spec": spec}, name="web", kind=KIND)


def other_image(image: str) -> Change:
    """The template gets another image."""
    return changed(template={"cloneSetTemplate": {"spec": {"template": template(image)}}})


scenario = partial(Scenario, kind=KIND, services=("topology", "cloneset"), every=4)

SCENARIOS = (
    scenario(
        name="united-comes",
        given=(),
        when=(Create(document=united(A, B, C, replicas=5)),),
        then=Spread(pods={"a": {"one": 1}, "b": {"one": 2}, "c": {"one": 2}}, status={"readyReplicas": 5}),
    ),
    scenario(
        name="united-updated",
        given=ready(united(A, B)),
        when=(other_image("two"),),
        then=Spread(pods={"a": {"two": 2}, "b": {"two": 2}}, revisions=2, status={"updatedReadyReplicas": 4}),
        exact=False,
    ),
    scenario(
        name="united-held-by-partitions",
        given=ready(united(A, B, updateStrategy={"manualUpdate": {"partitions": {"a": 1, "b": 2}}})),
        when=(other_image("two"),),
        then=Spread(pods={"a": {"one": 1, "two": 1}, "b": {"one": 2}}, revisions=2, status={"updatedReplicas": 1}),
        exact=False,
    ),
    scenario(
        name="united-scaled",
        given=ready(united(A, B)),
        when=(changed(replicas=7),),
        then=Spread(pods={"a": {"one": 3}, "b": {"one": 4}}, status={"replicas": 7}),
    ),
    scenario(
        name="united-loses-a-subset",
        given=ready(united(A, B)),
        when=(changed(topology={"subsets": [A]}),),
        then=Spread(pods={"a": {"one": 4}}, status={"replicas": 4}),
        exact=False,
    ),
    scenario(
        name="united-gets-a-subset-while-it-rolls",
        given=ready(united(A, B)),
        when=(other_image("two"), changed(topology={"subsets": [A, B, C]})),
        then=Spread(pods={"a": {"two": 1}, "b": {"two": 2}, "c": {"two": 1}}, revisions=2),
        exact=False,
    ),
    scenario(
        name="united-goes",
        given=ready(united(A, B)),
        when=(Remove(name="web", kind=KIND),),
        then=Spread(pods={}, revisions=0, exists=False),
    ),
)

TERMS = {UNITED_DEPLOYMENT: united_terms}
