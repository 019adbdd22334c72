"""An object that makes a workload, in each command: the sample kind, its CloneSet, and the pods of that."""

import asyncio
from typing import Any, cast

import pytest

from flotilla_cli.commands.explain import explain_pod
from flotilla_cli.output import plain
from flotilla_cli.tree.live import LiveView, ObjectGone
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.kind import Kind
from flotilla_common.api.resources import NAMESPACE, NODE, POD, Resource
from flotilla_common.kube.interface import Api, ApiError
from flotilla_insight.diagnosis.diagnose import diagnose
from flotilla_insight.preview.report import Report
from flotilla_insight.tree import Card, SetView
from flotilla_insight.views import view_of
from tests.sample.added import added
from tests.sample.kind import SAMPLES
from tests.support.fake_clock import START as NOW
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi
from tests.unit.preview.live import story_of

__all__ = ["added"]


class Patient(FakeClock):
    """A clock whose sleeps last until the test ends."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.Event().wait()


def named(name: str, owner: Json | None = None, kind: Resource = SAMPLES, **members: Any) -> Json:
    meta: Json = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "generation": 1, "resourceVersion": "1"}
    if owner is not None:
        about = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}
        meta["ownerReferences"] = [{"apiVersion": kind.api_version, "kind": kind.kind, **about}]
    return {"metadata": meta, **members}


PARENT = named("shop", spec={"size": 1, "replicas": 2}, status={"size": 1, "readyReplicas": 1})
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}
CHILD = named(
    "shop-set",
    PARENT,
    spec={"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE, "minReadySeconds": 9},
    status={"replicas": 2, "readyReplicas": 1, "updateRevision": "shop-set-1", "observedGeneration": 1},
)
STRANGER = named("else", named("other"), spec={"replicas": 9})


def pod(name: str, owner: Json, waiting: str = "") -> Json:
    state = {"waiting": {"reason": waiting, "message": "no such image"}} if waiting else {"running": {}}
    status = {
        "phase": "Pending" if waiting else "Running",
        "conditions": [] if waiting else [{"type": "Ready", "status": "True", "lastTransitionTime": NOW.isoformat()}],
        "containerStatuses": [{"name": "main", "image": "app:1", "ready": not waiting, "state": state}],
    }
    made = named(name, owner, CLONE_SET, spec={"nodeName": "n1", **TEMPLATE["spec"]}, status=status)
    made["metadata"]["labels"] = {"a": "b", "controller-revision-hash": "shop-set-1"}
    return made


PODS = [pod("shop-set-a", CHILD), pod("shop-set-b", CHILD, "ImagePullBackOff"), pod("else-a", STRANGER)]


def cluster(errors: dict[str, Exception] | None = None) -> FakeApi:
    node = named("n1", status={"conditions": [{"type": "Ready", "status": "True"}]})
    known = {SAMPLES: [PARENT], CLONE_SET: [CHILD, STRANGER], POD: PODS, NODE: [node]}
    return FakeApi(known, errors=errors)


def live(api: FakeApi) -> LiveView:
    return LiveView(cast("Api", api), Patient(), view_of(SAMPLES), "shop", "shop")


async def test_get_draws_the_children_below_the_parent(added: Kind) -> None:
    shown = live(cluster())
    await shown.load()
    assert plain(shown.drawing(NOW)).splitlines() == [*GET]
    card = shown.view()
    assert isinstance(card, Card)
    assert [child.name for child in card.children or ()] == ["shop-set"]


PULL = "image app:1 of container main cannot be pulled (ErrImagePull): no such image"
GET = (
    "Sample shop/shop  1 of 2 pods are ready  age -",
    "├── nothing to wait for",
    "├── CONFIGMAPS  WANTED",
    "│   1           1",
    "└── CloneSet shop/shop-set  2 desired, 2 exist, 1 ready, 0 of 0 updated  age -",
    f"    ├── shop-set-b: {PULL}",
    "    ├── shop-set-a: ready, and available after minReadySeconds 9 (at 2026-01-01T00:00:09Z)",
    "    ├── waiting: 1 pod to become ready",
    "    └── revision shop-set-1  update  1/2 ready",
    f"        └── ✗  shop-set-b  ImagePullBackOff  -  0/1  0 restarts  -  n1  app:1  {PULL}",
    "            ●  shop-set-a  Running           -  1/1  0 restarts  -  n1  app:1  available in 9s (minReadySeconds)",
)


async def test_get_follows_parent_children_and_pods(added: Kind) -> None:
    api = cluster()
    shown = live(api)
    await shown.load()
    following = asyncio.create_task(shown.keep())
    api.send(SAMPLES, "MODIFIED", PARENT | {"status": {"size": 1, "readyReplicas": 2}})
    api.send(CLONE_SET, "MODIFIED", CHILD | {"status": {"replicas": 2, "readyReplicas": 2}})
    api.send(POD, "DELETED", PODS[0])
    api.send(POD, "ADDED", pod("shop-set-c", CHILD))

    def seen() -> tuple[str, int, list[str]]:
        card = shown.view()
        assert isinstance(card, Card)
        (child,) = card.children or ()
        assert isinstance(child, SetView)
        return card.headline, child.numbers.ready, [one.name for part in child.revisions for one in part.pods]

    wanted = ("2 of 2 pods are ready", 2, ["shop-set-b", "shop-set-c"])
    async with asyncio.timeout(5):
        while seen() != wanted:
            await shown.changed.wait()
            shown.changed.clear()
    api.send(SAMPLES, "DELETED", PARENT)
    async with asyncio.timeout(5):
        with pytest.RaisesGroup(ObjectGone):
            await following


async def test_a_namesake_is_another_object(added: Kind) -> None:
    api = cluster()
    shown = live(api)
    await shown.load()
    api.replace_all(SAMPLES, PARENT | {"metadata": PARENT["metadata"] | {"uid": "another"}})
    with pytest.RaisesGroup(ObjectGone):
        await shown.keep()


async def explained(api: FakeApi) -> Any:
    return await diagnose(cast("Api", api), None, Patient(), SAMPLES, "shop", "shop")


async def test_explain_goes_through_to_the_pod(added: Kind) -> None:
    found = await explained(cluster())
    assert found.verdict.line == f"stuck: shop-set-b: {PULL}"


async def test_explain_without_the_right_to_read_children(added: Kind) -> None:
    found = await explained(cluster({"clonesets": ApiError(403, "Forbidden", "clonesets is forbidden")}))
    assert found.verdict.causes == ()
    assert any("you may not read" in note for note in found.notes)


async def test_a_pod_is_told_of_by_each_kind_that_knows_it(added: Kind) -> None:
    api = cluster()
    api.replace_all(NAMESPACE, named("shop"))
    api.replace_all(POD, PODS[0] | {"metadata": PODS[0]["metadata"] | {"labels": LABELS}})
    told = await explain_pod(cast("Api", api), "", "shop", "shop-set-a", Patient())
    assert told.reasons == ["it is counted by Sample shop"]
    assert told.sentence.startswith("ready, and available after minReadySeconds 9")


LABELS = {"sample": "shop"}


async def test_plan_plays_the_child_by_its_own_planner(added: Kind) -> None:
    before = named("shop", spec={"size": 0, "replicas": 0})
    story = await story_of("Sample", before, named("shop", spec={"size": 0, "replicas": 2}), {"Sample": [before]})
    assert made(story) == [("CloneSet", "shop"), ("ControllerRevision", "shop-6699ccf74f"), *NEW_PODS]


NEW_PODS = [("Pod", "new pod 1"), ("Pod", "new pod 2")]


def made(story: Report) -> list[tuple[str, str]]:
    steps = [step for wave in story.waves for step in wave.steps]
    return [(step.kind, step.name or step.alias) for step in steps if step.do == "create"]


async def test_plan_changes_a_child_that_is_there(added: Kind) -> None:
    before = named("shop", spec={"size": 0, "replicas": 0})
    child = CHILD | {"metadata": CHILD["metadata"] | {"name": "shop"}, "spec": CHILD["spec"] | {"replicas": 0}}
    objects = {"Sample": [before], "CloneSet": [child, STRANGER]}
    story = await story_of("Sample", before, named("shop", spec={"size": 0, "replicas": 2}), objects)
    patches = [(step.kind, step.name) for wave in story.waves for step in wave.steps if step.do == "patch"]
    assert patches == [("CloneSet", "shop")]
    assert [one for one in made(story) if one[0] == "Pod"] == NEW_PODS
    assert story.serving is not None
    assert (story.serving.now, story.serving.end) == (0, 2)


async def test_owners_in_a_circle_are_nobodys(added: Kind) -> None:
    before = named("shop", spec={"size": 0, "replicas": 0})
    first, second = named("a", named("b"), CLONE_SET, spec={"replicas": 0}), named("b", named("a"), CLONE_SET, spec={})
    objects = {"Sample": [before], "CloneSet": [first, second], "Pod": [pod("a-1", first)]}
    story = await story_of("Sample", before, named("shop", spec={"size": 0, "replicas": 2}), objects)
    assert story.serving is not None
    assert (story.serving.now, story.serving.end) == (0, 2)


async def test_explain_where_children_are_not_served(added: Kind) -> None:
    found = await explained(cluster({"clonesets": ApiError(404, "NotFound", "there is no such kind")}))
    assert found.verdict.causes == ()
    assert not any("you may not read" in note for note in found.notes)
