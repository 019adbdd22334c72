"""Plans of UnitedDeployments, down to the pods of their children, and of WorkloadSpreads, with deletion costs."""

from copy import deepcopy
from typing import Any

import pytest

from flotilla_cli.preview.render import render
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT
from flotilla_common.api.kinds.workloadspread.types import DELETION_COST, MATCHED
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT
from flotilla_insight.preview.report import Report
from flotilla_insight.views import view_of
from flotilla_topology.uniteddeployment.children import (
    ADVANCED_STATEFUL_SETS,
    CLONE_SETS,
    DEPLOYMENTS,
    STATEFUL_SETS,
    ChildKind,
)
from tests.testkit import pods as pods_of
from tests.testkit.documents import conditions, metadata, owner
from tests.testkit.pods import container
from tests.unit.preview.live import story_of
from tests.unit.uniteddeployment.build import template

KINDS = (CLONE_SETS, ADVANCED_STATEFUL_SETS, STATEFUL_SETS, DEPLOYMENTS)
NODES: list[Json] = [
    {"metadata": {"name": "n1", "uid": "uid-n1", "resourceVersion": "1"}, "status": {"allocatable": {"pods": "99"}}}
]


def united(kind: ChildKind, *subsets: str, replicas: int = 4) -> Json:
    meta = {"name": "ud", "namespace": "ns", "uid": "u-ud", "generation": 1, "resourceVersion": "1"}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "ud"}},
        "template": {kind.template: template("nginx:1")},
        "topology": {"subsets": [{"name": name} for name in subsets]},
    }
    return {"metadata": meta, "spec": spec}


def done(story: Report, *kinds: str) -> list[str]:
    return [f"{step.do} {step.alias or step.name}" for wave in story.waves for step in wave.steps if step.kind in kinds]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_children_and_their_pods(kind: ChildKind) -> None:
    """For children of our services each pod is listed, for Kubernetes' controllers their number."""
    wanted = united(kind, "a", "b")
    story = await story_of("UnitedDeployment", wanted | {"spec": {}}, wanted, {"Node": NODES})
    name = kind.resource.kind
    assert done(story, name) == [f"create new {name} 1", f"create new {name} 2"]
    assert story.totals.created + story.totals.created_by_kubernetes == 4
    assert (story.totals.created_by_kubernetes == 4) is (kind.resource in (DEPLOYMENT, BUILT_IN_STATEFUL_SET))
    assert (story.totals.created == 4) is (kind.resource in (CLONE_SET, STATEFUL_SET))
    assert story.serving is not None
    assert (story.serving.now, story.serving.end) == (0, 4)
    assert "4 created" in render(story, everything=False).plain


def child(subset: str, *, replicas: int) -> Json:
    """Return a CloneSet with its pods' labels, as the UnitedDeployment wrote it before anybody looked at revisions."""
    labels = {"app": "ud", "apps.kruise.io/subset-name": subset}
    meta = metadata(f"ud-{subset}", "ns", uid=f"u-{subset}", version=1, generation=1, labels=labels)
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod}
    return {"metadata": meta | {"ownerReferences": [owner("UnitedDeployment", "ud", "u-ud")]}, "spec": spec}


async def test_a_child_whose_subset_leaves_is_deleted() -> None:
    before, after = united(CLONE_SETS, "a", "b"), united(CLONE_SETS, "a")
    objects = {"Node": NODES, "CloneSet": [child("a", replicas=2), child("b", replicas=0)]}
    story = await story_of("UnitedDeployment", before, after, objects)
    assert [one for one in done(story, "CloneSet") if one.startswith("delete")] == ["delete ud-b"]


def test_pods_are_updated_as_the_template_says() -> None:
    """The template of the children, not the UnitedDeployment, decides whether pods are recreated."""
    stored = united(ADVANCED_STATEFUL_SETS, "a")
    strategy = {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}}
    stored["spec"]["template"]["advancedStatefulSetTemplate"]["spec"]["updateStrategy"] = strategy
    view = view_of(UNITED_DEPLOYMENT)
    assert view.update_strategy(stored) == strategy
    assert view.update_strategy(united(CLONE_SETS, "a")) == {}


def pod(name: str, **annotations: str) -> Json:
    return pods_of.pod(
        name,
        "ns",
        uid=f"u-{name}",
        version=1,
        labels={"app": "web"},
        ownerReferences=[owner("CloneSet", "web", "u-web")],
        annotations=annotations,
        node="n1",
        containers=[container("main", "nginx:1")],
        phase="Running",
        conditions=conditions({"Ready": True}),
    )


def spread(limit: int) -> Json:
    target = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"}
    subsets = [{"name": "a", "maxReplicas": limit}, {"name": "b"}]
    meta = {"name": "ws", "namespace": "ns", "uid": "u-ws", "generation": 1, "resourceVersion": "1"}
    return {"metadata": meta, "spec": {"targetRef": target, "subsets": subsets}}


def clone_set(**meta: Any) -> Json:
    meta = {"name": "web", "namespace": "ns", "uid": "u-web", "resourceVersion": "1"} | meta
    return {"metadata": meta, "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {}}}


async def test_what_a_smaller_limit_makes_of_costs() -> None:
    placed = {MATCHED: '{"name":"ws","subset":"a"}', DELETION_COST: "200"}
    objects = {"Node": NODES, "CloneSet": [clone_set()], "Pod": [pod("p", **placed), pod("q", **placed)]}
    before = spread(2)
    story = await story_of("WorkloadSpread", before, spread(1), deepcopy(objects))
    assert "write pod p (n1): deletion cost 200 → -100" in render(story, everything=False).plain
    assert [reason.code for reason in story.reasons] == ["SubsetOverfull"]
    story = await story_of("WorkloadSpread", before, spread(3), objects)
    assert (story.waves, story.reasons) == ((), ())


async def test_where_pods_belong_that_were_there_before() -> None:
    objects = {"Node": NODES, "CloneSet": [clone_set()], "Pod": [pod("p"), pod("q")]}
    story = await story_of("WorkloadSpread", spread(1) | {"spec": {}}, spread(1), objects)
    text = render(story, everything=False).plain
    assert "write pod p (n1): subset - → a, deletion cost - → 200" in text
    assert "write pod q (n1): subset - → b, deletion cost - → 100" in text
