"""UnitedDeployments whose subsets, templates and workloads change under them (uniteddeployment.md §9, §15)."""

from typing import Any

from flotilla_common.api.kinds.uniteddeployment.types import SUBSET_LABEL
from flotilla_common.control.plan import Json
from tests.simulation.scenarios.manifests import cloneset
from tests.simulation.scenarios.node_steps import WaitStatus
from tests.simulation.scenarios.scenario import OFTEN
from tests.simulation.scenarios.steps import Create, Downtime, Remove, Sleep, Wait
from tests.simulation.scenarios.united_steps import ChangeChild, RemoveChild, RemovePodOf, WaitSubsets
from tests.simulation.scenarios.uniteddeployment import (
    BUILT_IN_SETS,
    CLONES,
    DEPLOYMENTS,
    KIND,
    SETS,
    A,
    B,
    C,
    Spread,
    changed,
    child_spec,
    held_back,
    of_built_in,
    of_sets,
    other_image,
    ready,
    scenario,
    united,
    with_subsets,
)


def loose(subset: str, replicas: int = 1, **labels: str) -> Json:
    """Create a CloneSet `stray` without a controller, labelled as a child of a subset."""
    document = cloneset(replicas, name="stray")
    own = {"app": "web", SUBSET_LABEL: subset}
    document["metadata"]["labels"] = own | labels
    document["spec"]["selector"]["matchLabels"] = own
    document["spec"]["template"]["metadata"]["labels"] = own
    return document


def of_kind(kind: str, image: str = "two") -> Json:
    """Return the template of another kind of workloads."""
    old = next(name for name in (CLONES, SETS) if name != kind)
    return {old: None, kind: {"metadata": {"labels": {"app": "web"}}, "spec": child_spec(kind, image)}}


def patched(subset: Json, patch: Any) -> Json:
    """Return the subset with a patch."""
    return {**subset, "patch": patch}


ENV = {"spec": {"containers": [{"name": "main", "env": [{"name": "ZONE", "value": "a"}]}]}}
BROKEN = {"spec": {"containers": "none"}}

SCENARIOS = (
    scenario(
        name="united-loses-a-subset",
        given=ready(united(A, B)),
        when=(with_subsets(A),),
        then=Spread(pods={"a": {"one": 4}}, status={"replicas": 4}),
        exact=False,
        every=OFTEN,
    ),
    of_sets(
        name="united-of-sets-loses-a-subset",
        given=ready(united(A, B, kind=SETS)),
        when=(with_subsets(A),),
        then=Spread(pods={"a": {"one": 4}}, status={"replicas": 4}),
        exact=False,
    ),
    of_built_in(
        name="united-of-built-in-sets-loses-a-subset",
        given=ready(united(A, B, kind=BUILT_IN_SETS)),
        when=(with_subsets(A),),
        then=Spread(pods={"a": {"one": 4}}, status={"replicas": 4}),
        exact=False,
    ),
    scenario(
        name="united-gets-a-subset",
        given=ready(united(A, B, replicas=6)),
        when=(with_subsets(A, B, C),),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 2}, "c": {"one": 2}}),
        exact=False,
    ),
    scenario(
        name="united-gets-a-subset-while-it-rolls",
        given=ready(united(A, B, replicas=6)),
        when=(other_image("two"), with_subsets(A, B, C)),
        then=Spread(pods={"a": {"two": 2}, "b": {"two": 2}, "c": {"two": 2}}, revisions=2),
        exact=False,
    ),
    scenario(
        name="united-renames-a-subset",
        given=ready(united(A, B)),
        when=(with_subsets(A, C),),
        then=Spread(pods={"a": {"one": 2}, "c": {"one": 2}}),
        exact=False,
        every=OFTEN,
    ),
    scenario(
        name="united-renames-a-subset-while-it-rolls",
        given=ready(united(A, B)),
        when=(other_image("two"), WaitSubsets(pods={"a": 2, "b": 2}, serving=0, image="two"), with_subsets(A, C)),
        then=Spread(pods={"a": {"two": 2}, "c": {"two": 2}}, revisions=2),
        exact=False,
    ),
    scenario(
        name="united-uses-a-name-again",
        given=ready(united(A, B)),
        when=(with_subsets(A), with_subsets(A, B)),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 2}}),
        exact=False,
    ),
    scenario(
        name="united-uses-a-name-again-while-its-pods-go",
        given=ready(united(A, B)),
        when=(with_subsets(A), WaitSubsets(pods={"a": 4}), with_subsets(A, B)),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 2}}),
        exact=False,
    ),
    scenario(
        name="united-swaps-all-subsets",
        given=ready(united(A, replicas=2)),
        when=(with_subsets(B), Sleep(seconds=0.3), with_subsets(C), changed(replicas=3)),
        then=Spread(pods={"c": {"one": 3}}),
        exact=False,
    ),
    scenario(
        name="united-switches-to-sets",
        given=ready(united(A, B)),
        when=(changed(template=of_kind(SETS)),),
        then=Spread(pods={"a": {"two": 2}, "b": {"two": 2}}, revisions=2),
        services=("topology", "cloneset", "statefulset"),
        exact=False,
    ),
    scenario(
        name="united-switches-to-deployments",
        given=ready(united(A, B)),
        when=(changed(template=of_kind(DEPLOYMENTS)), with_subsets(A)),
        then=Spread(pods={"a": {"two": 4}}, revisions=2),
        exact=False,
    ),
    scenario(
        name="united-child-deleted",
        given=ready(united(A, B)),
        when=(RemoveChild(subset="a"),),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 2}}),
        exact=False,
    ),
    scenario(
        name="united-child-scaled-by-hand",
        given=ready(united(A, B)),
        when=(ChangeChild(subset="a", patch={"spec": {"replicas": 5}}),),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 2}}),
        exact=False,
    ),
    scenario(
        name="united-pods-deleted",
        given=ready(united(A, B)),
        when=(RemovePodOf(subset="a"), RemovePodOf(subset="b", nth=1)),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 2}}),
    ),
    scenario(
        name="united-takes-in",
        given=(Create(document=loose("a")), Wait(pods=1, serving=1, owner="stray")),
        when=(Create(document=united(A, B)),),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 2}}),
        exact=False,
    ),
    scenario(
        name="united-takes-in-nobody-else",
        given=(Create(document=loose("", 0)), *ready(united(A, B))),
        when=(changed(replicas=6),),
        then=Spread(pods={"a": {"one": 3}, "b": {"one": 3}}, alone=False),
    ),
    scenario(
        name="united-has-duplicates",
        given=ready(united(A, B)),
        when=(Create(document=loose("a")),),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 2}}),
        exact=False,
    ),
    scenario(
        name="united-released-what-left-the-selector",
        given=ready(united(A, B)),
        when=(ChangeChild(subset="b", patch={"metadata": {"labels": {"app": "mine"}}}),),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 4}}, alone=False),
        exact=False,
    ),
    scenario(
        name="united-patched",
        given=ready(united(A, B)),
        when=(with_subsets(patched(A, ENV), B),),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 2}}),
        exact=False,
    ),
    scenario(
        name="united-patched-in-vain",
        given=ready(united(A, B)),
        when=(with_subsets(patched(A, BROKEN), B), changed(replicas=6), Sleep(seconds=2), with_subsets(A, B)),
        then=Spread(pods={"a": {"one": 3}, "b": {"one": 3}}),
        exact=False,
    ),
    scenario(
        name="united-changed-while-nobody-looks",
        given=ready(united(A, B)),
        when=(
            other_image("two"),
            changed(updateStrategy=held_back(a=1)),
            Downtime(service="topology", seconds=4),
            with_subsets(A, C),
        ),
        then=Spread(pods={"a": {"one": 1, "two": 1}, "c": {"two": 2}}, revisions=2),
        exact=False,
    ),
    scenario(
        name="united-comes-again",
        given=ready(united(A, B)),
        when=(Remove(name="web", kind=KIND), Create(document=united(A, C, image="two"))),
        then=Spread(pods={"a": {"two": 2}, "c": {"two": 2}}),
        exact=False,
    ),
    scenario(
        name="united-goes-without-its-children",
        given=ready(united(A, B)),
        when=(
            Remove(name="web", kind=KIND, propagation="Orphan"),
            Sleep(seconds=1),
            Create(document=united(A, B)),
            WaitStatus(name="web", kind=KIND, least={"updatedReadyReplicas": 4}),
        ),
        then=Spread(pods={"a": {"one": 2}, "b": {"one": 2}}),
        exact=False,
    ),
)
