"""The page of a workload."""

from typing import Any

import pytest

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD
from flotilla_common.api.resources import DEPLOYMENT, REPLICA_SET, REVISION, Resource
from flotilla_console.blocks.types import Diff, Group, Notice
from flotilla_console.model.resources import AUTOSCALER, DISRUPTION_BUDGET, ROLLOUT
from flotilla_console.page import Page
from flotilla_console.pages.differences import MOST_LINES
from flotilla_console.pages.revisions import GROUPED_ABOVE
from flotilla_console.pages.workload import build
from tests.unit.console.model.worlds import Only, World, column, owned_by, table, template, texts

BUDGET = catalogue.called("podunavailablebudget").resource

_STUCK = {"state": "stuck", "code": "ErrImagePull", "message": "web-1: no such image", "objects": ["web-1", "gone"]}
_HELD = {"state": "held", "code": "PausedByUser", "message": "paused by the user"}
_WAIT = {"state": "waiting", "code": "WaitingForMaxUnavailable", "message": "maxUnavailable 1 is used by web-1"}


def _page(world: World, allowed: Any = None, resource: Resource = CLONE_SET, name: str = "web", **query: str) -> Page:
    place = {"group": resource.group or "core", "plural": resource.plural, "namespace": "shop", "name": name}
    found = build(world.request(allowed, query=query, **place))
    assert found is not None
    return found


def _groups(page: Page) -> list[Group]:
    return [block for block in page.blocks if isinstance(block, Group) and block.id.startswith("revision-")]


def _differences(page: Page) -> list[Diff]:
    return [block for block in page.blocks if isinstance(block, Diff)]


def test_there_is_no_page_of_what_is_missing_or_hidden() -> None:
    world = World()
    world.clone_set()
    place = {"group": "apps.kruise.io", "plural": "clonesets", "namespace": "shop"}
    assert build(world.request(name="gone", **place)) is None
    assert build(world.request(Only(), name="web", **place)) is None
    assert build(world.request(group="core", plural="secrets", namespace="shop", name="web")) is None


def test_the_most_severe_reason_comes_first_with_its_evidence() -> None:
    world = World()
    world.clone_set()
    world.pod("web-1")
    world.explain(CLONE_SET, "web", _WAIT, _STUCK, numbers={"maxUnavailable": 1}, wakeAt="2026-01-01T00:05:00Z")
    page = _page(world)
    notice = page.blocks[0]
    assert isinstance(notice, Notice)
    assert notice.tone == "bad"
    assert "no such image" in texts(notice)
    assert column(table(page, "reasons"), "code") == ["ErrImagePull", "WaitingForMaxUnavailable"]
    assert "planned again at 2026-01-01T00:05:00Z" in texts(page)
    assert "maxUnavailable" in texts(next(block for block in page.blocks if getattr(block, "id", "") == "numbers"))


@pytest.mark.parametrize(("reasons", "shown"), [([_WAIT], False), ([_STUCK], True), ([_WAIT, _HELD], True)])
def test_a_table_repeats_no_sentence(reasons: list[dict[str, Any]], shown: bool) -> None:
    world = World()
    world.clone_set()
    world.explain(CLONE_SET, "web", *reasons)
    page = _page(world)
    assert all(reason["message"] in texts(page) for reason in reasons)
    assert any(getattr(block, "id", "") == "reasons" for block in page.blocks) == shown


def test_pods_in_reasons_are_links_if_they_may_be_seen() -> None:
    world = World()
    world.clone_set()
    world.pod("web-1")
    world.explain(CLONE_SET, "web", _STUCK)
    assert "/pods/shop/web-1" in texts(table(_page(world), "reasons"))
    assert "/pods/shop/gone" not in texts(table(_page(world), "reasons"))
    assert "/pods/" not in texts(_page(world, Only(clonesets=["shop"])))


def test_it_says_that_reasons_are_missing_or_old() -> None:
    world = World()
    world.clone_set()
    assert "no reasons of its service" in texts(_page(world))
    world.clone_set(generation=2, observedGeneration=2)
    world.explain(CLONE_SET, "web", _WAIT)
    assert "about generation 1, not 2" in texts(_page(world))


def test_pods_are_by_revision_newest_first_and_troubled_ones_first() -> None:
    world = World()
    world.clone_set(currentRevision="web-1")
    world.revision("web-1", 1, "nginx:1")
    world.revision("web-2", 2, "nginx:2")
    world.pod("old", labels={"controller-revision-hash": "web-1"})
    world.pod("a")
    world.pod("b", ready=False)
    page = _page(world)
    assert [group.id for group in _groups(page)] == ["revision-web-2", "revision-web-1"]
    assert ["newest" in texts(group.summary) for group in _groups(page)] == [True, False]
    assert ["current" in texts(group.summary) for group in _groups(page)] == [False, True]
    assert column(table(page, "revision-web-2-pods"), "name") == ["b", "a"]
    assert "ImagePullBackOff" in texts(table(page, "revision-web-2-pods"))


def test_pods_of_a_revision_that_is_gone_are_under_their_label() -> None:
    world = World()
    world.clone_set()
    world.pod("a", labels={"controller-revision-hash": "web-0"})
    assert [group.id for group in _groups(_page(world))] == ["revision-web-0"]


def test_many_pods_are_folded_away_and_troubled_ones_stay() -> None:
    world = World()
    world.clone_set()
    for number in range(GROUPED_ABOVE + 1):
        world.pod(f"web-{number:03}", ready=number != 7)
    page = _page(world, offset="100")
    (group,) = _groups(page)
    assert group.open
    assert column(table(page, "revision-web-2-pods"), "name") == ["web-007"]
    folded = group.blocks[1]
    assert isinstance(folded, Group)
    assert not folded.open
    serving = table(page, "revision-web-2-serving")
    assert (serving.total, serving.offset, len(serving.rows)) == (GROUPED_ABOVE, 100, 100)


def test_pods_need_their_right() -> None:
    world = World()
    world.clone_set()
    world.pod("web-1")
    page = _page(world, Only(clonesets=["shop"]))
    assert _groups(page) == []
    assert "you may not list the pods" in texts(page)


def test_differences_of_templates() -> None:
    world = World()
    world.clone_set()
    world.revision("web-1", 1, "nginx:1")
    world.revision("web-2", 2, "nginx:2")
    (diff,) = _differences(_page(world))
    changed = [(line.sign, line.text.strip()) for line in diff.lines if line.sign != " "]
    assert changed == [("-", "image: nginx:1"), ("+", "image: nginx:2")]
    assert _differences(_page(world, Only(clonesets=["shop"]))) == []


def test_sidecars_are_compared_as_a_whole() -> None:
    world = World()
    world.put(SIDECAR_SET, "logs", "")
    for number in (1, 2):
        owner = owned_by(SIDECAR_SET, "logs")
        meta = {"name": f"logs-{number}", "namespace": "kruise-system", "ownerReferences": [owner]}
        data = {"spec": {"containers": [{"name": "log", "image": f"fluentd:{number}"}]}}
        world.add(REVISION, {"metadata": meta, "revision": number, "data": data})
    found = build(world.request(group="apps.kruise.io", plural="sidecarsets", namespace="-", name="logs"))
    assert found is not None
    assert ["fluentd:2" in texts(diff) for diff in _differences(found)] == [True]


def test_a_rollback_compares_with_the_revision_that_is_newest_now() -> None:
    world = World()
    world.clone_set(updateRevision="web-1")
    world.revision("web-1", 1, "nginx:1")
    world.revision("web-2", 2, "nginx:2")
    assert [diff.title for diff in _differences(_page(world))] == ["From web-2 to web-1"]


def test_huge_templates_are_not_compared() -> None:
    world = World()
    world.clone_set()
    world.revision("web-1", 1, "nginx:1")
    labels = {f"label-{number}": "x" for number in range(MOST_LINES)}
    huge = {"spec": {"template": template("nginx:2", **labels)}}
    meta = {"name": "web-2", "namespace": "shop", "ownerReferences": [owned_by(CLONE_SET, "web")]}
    world.add(REVISION, {"metadata": meta, "revision": 2, "data": huge})
    (diff,) = _differences(_page(world))
    assert len(diff.lines) == 1


def test_replica_sets_are_the_revisions_of_a_deployment() -> None:
    world = World()
    world.put(DEPLOYMENT, "web", spec={"replicas": 1})
    for number, image in (("9", "nginx:1"), ("10", "nginx:2")):
        meta = {
            "name": f"web-{number}",
            "namespace": "shop",
            "annotations": {"deployment.kubernetes.io/revision": number},
            "ownerReferences": [owned_by(DEPLOYMENT, "web")],
        }
        world.add(REPLICA_SET, {"metadata": meta, "spec": {"template": template(image)}})
        world.pod(f"web-{number}-a", owner=owned_by(REPLICA_SET, f"web-{number}"))
    page = _page(world, resource=DEPLOYMENT)
    assert [group.id for group in _groups(page)] == ["revision-web-10", "revision-web-9"]
    assert [diff.title for diff in _differences(page)] == ["From web-9 to web-10"]


def test_a_united_deployment_shows_its_workloads() -> None:
    world = World()
    world.put(UNITED_DEPLOYMENT, "all", spec={"replicas": 3})
    world.put(CLONE_SET, "web", ownerReferences=[owned_by(UNITED_DEPLOYMENT, "all")])
    page = _page(world, resource=UNITED_DEPLOYMENT, name="all")
    assert column(table(page, "children"), "name") == ["web"]


def test_what_acts_on_a_workload() -> None:
    world = World()
    world.clone_set()
    world.pod("web-1", annotations={"kruise.io/sidecarset-injected-list": "logs"})
    target = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "web"}
    chosen = {"matchLabels": {"app": "web"}}
    world.put(SIDECAR_SET, "logs", "", status={"observedGeneration": 1, "matchedPods": 1})
    world.put(BUDGET, "pub", spec={"selector": chosen}, status={"unavailableAllowed": 2})
    world.put(BUDGET, "by-name", spec={"targetRef": target})
    world.put(DISRUPTION_BUDGET, "pdb", spec={"selector": chosen}, status={"disruptionsAllowed": 1})
    world.put(AUTOSCALER, "hpa", spec={"scaleTargetRef": target, "maxReplicas": 9})
    world.put(WORKLOAD_SPREAD, "spread", spec={"targetRef": target})
    world.put(BUDGET, "of-another", spec={"targetRef": target | {"name": "api"}})
    world.put(BUDGET, "empty", spec={"selector": {}})
    world.put(BUDGET, "invalid", spec={"selector": {"matchExpressions": [{"operator": "x"}]}})
    world.put(DISRUPTION_BUDGET, "elsewhere", "other", spec={"selector": chosen})
    names = column(table(_page(world), "touching"), "name")
    assert sorted(names) == ["by-name", "hpa", "logs", "pdb", "pub", "spread"]


def test_rollouts_of_others_say_how_far_they_are() -> None:
    world = World()
    world.clone_set()
    reference = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"}
    steps = {"steps": [{"replicas": 1}, {"replicas": "100%"}]}
    at = {"currentStepIndex": 1, "currentStepState": "StepPaused"}
    canary = {"workloadRef": reference, "strategy": {"canary": steps}}
    world.put(ROLLOUT, "idle", spec=canary)
    world.put(ROLLOUT, "paused", spec=canary, status={"canaryStatus": at, "message": "waits for approval"})
    blue_green = {"workloadRef": reference, "strategy": {"blueGreen": steps}}
    world.put(ROLLOUT, "surging", spec=blue_green, status={"blueGreenStatus": at | {"currentStepIndex": 2}})
    world.put(ROLLOUT, "of-another", spec={"workloadRef": reference | {"name": "api"}})
    world.put(ROLLOUT, "hostile", spec={"workloadRef": reference, "strategy": []}, status={"canaryStatus": "x"})
    found = table(_page(world), "touching")
    assert dict(zip(column(found, "name"), column(found, "how"), strict=True)) == {
        "hostile": "it rolls updates out in 0 steps",
        "idle": "it rolls updates out in 2 steps",
        "paused": "it rolls out: step 1 of 2 StepPaused: waits for approval",
        "surging": "it rolls out: step 2 of 2 StepPaused",
    }


def test_what_acts_on_a_workload_needs_its_own_right() -> None:
    world = World()
    world.clone_set()
    world.put(BUDGET, "pub", spec={"selector": {"matchLabels": {"app": "web"}}})
    assert "pub" not in texts(_page(world, Only(clonesets=["shop"], pods=["shop"])))


def test_conditions() -> None:
    world = World()
    world.clone_set(conditions=[{"type": "FailedScale", "status": "True", "message": "quota"}, 7, {"type": 7}])
    assert column(table(_page(world), "conditions"), "type")[0] == "FailedScale"


def test_facts_lead_on() -> None:
    world = World()
    world.clone_set(labels={"team": "a"}, spec={"updateStrategy": {"type": "InPlaceIfPossible"}})
    page = texts(_page(world))
    for word in (
        "/workloads/apps.kruise.io/clonesets/shop/web/timeline",
        "/bus?subject=",
        "team=a",
        "InPlaceIfPossible",
    ):
        assert word in page


def test_cluster_scoped_objects_have_pages() -> None:
    world = World()
    world.put(SIDECAR_SET, "logs", "")
    assert build(world.request(group="apps.kruise.io", plural="sidecarsets", namespace="-", name="logs")) is not None
