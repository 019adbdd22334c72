"""The gatherers' views: owners that are confirmed as deleted, missing secrets, running lists."""

from typing import Any

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB, ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.api.resources import SECRET
from flotilla_common.control.keystate import Memory
from flotilla_common.control.watches import owner_keys
from flotilla_common.mirror.table import Table
from flotilla_jobs.imagelistpull.controller import JOBS as CHILDREN
from flotilla_jobs.imagelistpull.controller import LISTS
from flotilla_jobs.imagelistpull.controller import Gatherer as ListGatherer
from flotilla_jobs.imagepull.controller import CONTROLLER, COPIES, IMAGES, JOBS, PODS
from flotilla_jobs.imagepull.controller import LISTS as PARENTS
from flotilla_jobs.imagepull.selection import node_order
from flotilla_jobs.imagepull.snapshot import Options, PullJobSnapshot
from flotilla_jobs.nodeimage import controller as nodeimage
from flotilla_jobs.nodeimage.controller import CONTROLLER as NODE_CONTROLLER
from flotilla_jobs.nodeimage.snapshot import NodeImageSnapshot
from flotilla_jobs.nodeimage.snapshot import Options as NodeOptions
from tests.support.controller_context import FakeContext
from tests.testkit.documents import Json, decoded
from tests.unit.imagepull.build import begun, copy_of, fresh, job, list_job, node, node_image, pod, secret, tag

CONFIG = "kruise-daemon-config"
LIST_OWNER: Json = {
    "apiVersion": "apps.kruise.io/v1beta1",
    "kind": "ImageListPullJob",
    "name": "L",
    "uid": "uid-L",
    "controller": True,
}


class Nodes:
    """A node gatherer over its tables."""

    def __init__(self) -> None:
        self.context = FakeContext()
        self.gatherer = self.context.build(NODE_CONTROLLER, NodeOptions())
        self.nodes, self.images = self.context.table(nodeimage.NODES), self.context.table(nodeimage.IMAGES)
        self.jobs, self.secrets = self.context.table(nodeimage.JOBS), self.context.table(nodeimage.COPIES)

    def gathered(self, name: str = "n1") -> NodeImageSnapshot:
        found = self.gatherer.gather(("", name), Memory())
        assert found is not None
        return found


def test_an_owner_is_lost_only_when_the_apiserver_says_so():
    bench = Nodes()
    bench.images.apply(node_image("n1", [tag("J", "K")]))
    bench.context.gone = False
    assert bench.gathered().lost_owners == frozenset()
    assert bench.context.asked == [(("ns", "J"), "uid-J"), (("ns", "K"), "uid-K")]
    assert bench.context.replanned == [("", "n1"), ("", "n1")]
    bench.context.gone = True
    bench.context.server[IMAGE_PULL_JOB, "ns", "K"] = job("K")
    assert bench.gathered().lost_owners == {"uid-J"}


def test_38_a_namesake_is_another_job():
    bench = Nodes()
    bench.images.apply(node_image("n1", [tag("J")]))
    bench.jobs.apply(job("J", meta={"uid": "newer"}))
    bench.context.gone = False
    assert bench.gathered().lost_owners == frozenset()
    assert bench.context.asked == [(("ns", "J"), "uid-J")]
    bench.context.gone = True
    assert bench.gathered().lost_owners == {"uid-J"}


def test_a_job_that_was_seen_to_go_is_lost_at_once():
    bench = Nodes()
    bench.images.apply(node_image("n1", [tag("J")]))
    bench.jobs.apply(job())
    assert bench.gathered().lost_owners == frozenset()
    bench.jobs.remove("ns", "J", "uid-J")
    assert bench.gathered().lost_owners == {"uid-J"}
    assert bench.context.asked == []


@pytest.mark.parametrize(
    ("one", "running"),
    [
        pytest.param(job(status=begun()), True, id="running"),
        pytest.param(job(completionPolicy={"type": "Never"}), False, id="never ends"),
        pytest.param(job(status={"completionTime": "2026-01-01T00:00:00Z"}), False, id="over"),
        pytest.param(job(meta={"deletionTimestamp": "2026-01-01T00:00:00Z"}), False, id="on its way out"),
    ],
)
def test_running_owners(one: ImagePullJob, running: bool):
    bench = Nodes()
    bench.images.apply(node_image("n1", [tag("J")]))
    bench.jobs.apply(one)
    assert bool(bench.gathered().running_owners) == running


def test_only_secrets_that_nodes_could_get_are_looked_for():
    bench = Nodes()
    references = [
        {"namespace": CONFIG, "name": "gone"},
        {"namespace": CONFIG, "name": "there"},
        {"namespace": CONFIG, "name": "copy", "mode": "batch"},
        {"namespace": "elsewhere", "name": "s"},
    ]
    bench.images.apply(node_image("n1", [tag()], secrets=references))
    bench.secrets.apply(secret("there", CONFIG))
    assert bench.gathered().lost_secrets == {(CONFIG, "gone")}


def test_keys_are_nodes_and_node_images():
    bench = Nodes()
    bench.nodes.apply(node("a"))
    bench.images.apply(node_image("b"))
    assert bench.gatherer.keys() == [("", "a"), ("", "b")]
    assert bench.gatherer.gather(("", "c"), Memory()) is None
    assert bench.gathered("a").image is None


OVER = {"completionTime": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("before", "after", "woken"),
    [
        pytest.param(None, job(), False, id="comes"),
        pytest.param(job(), job(status=begun(), meta={"resourceVersion": "4"}), False, id="goes on"),
        pytest.param(job(), job(status=OVER, meta={"resourceVersion": "4"}), True, id="ends"),
        pytest.param(job(), None, True, id="goes"),
    ],
)
def test_a_job_that_ends_wakes_the_nodes_that_have_tags_for_it(
    before: ImagePullJob | None, after: ImagePullJob | None, woken: bool
):
    bench = Nodes()
    bench.images.apply(node_image("n1", [tag("J")]))
    bench.images.apply(node_image("n2", [tag("K")]))
    if before is not None:
        bench.jobs.apply(before)
    if after is not None:
        bench.jobs.apply(after)
    else:
        bench.jobs.remove("ns", "J", "uid-J")
    assert bench.context.woken == ([("", "n1")] if woken else [])


def test_a_node_wakes_its_image_when_it_comes_or_its_labels_change():
    bench = Nodes()
    bench.nodes.apply(node("n1"))
    bench.nodes.apply(node("n1", ready=30, resourceVersion="2"))
    assert bench.context.woken == [("", "n1")]
    bench.nodes.apply(node("n1", labels={"zone": "a"}, resourceVersion="3"))
    bench.nodes.remove("", "n1", "node-n1")
    assert bench.context.woken == [("", "n1")] * 3


class Jobs:
    """A job gatherer over its tables."""

    def __init__(self, *images: NodeImage) -> None:
        self.context = FakeContext(unwatched=(CLONE_SET,))
        self.gatherer = self.context.build(CONTROLLER, Options())
        self.context.put(IMAGES, *images)

    def gathered(self, one: ImagePullJob) -> PullJobSnapshot:
        self.context.put(JOBS, one)
        found = self.gatherer.gather(("ns", one.metadata.name), Memory())
        assert found is not None
        return found


def test_an_unreadable_selector_is_a_problem_and_not_a_crash():
    found = Jobs(*fresh()).gathered(job(selector={"matchLabels": {"a b": ""}}))
    assert "matchLabels" in found.problem
    assert found.nodes == ()


async def test_copies_are_those_of_wanted_sources_and_those_in_use():
    bench, one = Jobs(), job(pullSecrets=["s1"])
    bench.context.server[SECRET, "ns", "s1"] = secret()
    for copy in (copy_of("s1", name="b"), copy_of("old", "ns/J", name="a"), copy_of("s2", "ns/X", name="c")):
        bench.context.put(COPIES, copy)
    assert bench.gathered(one).sources == {}
    await bench.context.work()
    found = bench.gathered(one)
    assert [copy.metadata.name for copy in found.copies] == ["a", "b"]
    assert found.sources == {"s1": secret()}
    assert "c" in found.taken
    assert "d" not in found.taken


async def test_jobs_of_other_replicas_have_their_secrets_looked_at_there():
    bench, one = Jobs(), job(pullSecrets=["s1"])
    bench.context.mine = False
    bench.gathered(one)
    await bench.context.work()
    assert bench.gathered(one).sources == {}


def test_changes_wake_the_jobs_that_they_concern():
    bench = Jobs()
    bench.context.put(JOBS, job("J", meta={"ownerReferences": [LIST_OWNER]}), job("P", podSelector={"matchLabels": {}}))
    woken = bench.context.woken
    bench.context.put(COPIES, copy_of("s1", "ns/J"))
    assert woken == [("ns", "J")]
    bench.context.put(IMAGES, *fresh("n1"))
    assert sorted(woken[1:]) == [("ns", "J"), ("ns", "P")]
    bench.context.put(PODS, pod("a", "n1"))
    assert woken[3:] == [("ns", "P")]
    bench.context.put(PARENTS, list_job("a"))
    bench.context.put(PARENTS, list_job("a", meta={"resourceVersion": "4"}))
    assert woken[4:] == [("ns", "J")]


@pytest.mark.parametrize(
    ("parent", "running"),
    [
        pytest.param(list_job("a"), True, id="running"),
        pytest.param(list_job("a", status={"completionTime": "2026-01-01T00:00:00Z"}), False, id="over"),
        pytest.param(list_job("a", meta={"uid": "another"}), False, id="a namesake"),
        pytest.param(None, False, id="gone"),
    ],
)
def test_whether_the_list_still_runs(parent: ImageListPullJob | None, running: bool):
    bench = Jobs()
    if parent is not None:
        bench.context.put(PARENTS, parent)
    one = job(meta={"ownerReferences": [LIST_OWNER]}, status={"completionTime": "2026-01-01T00:00:00Z"})
    assert bench.gathered(one).of_running_list == running


def test_26_a_table_never_goes_back_behind_our_own_write():
    bench = Jobs(node_image("n1", [tag("J")], resourceVersion="9"))
    bench.context.put(IMAGES, node_image("n1", resourceVersion="8"))
    (image,) = bench.gathered(job()).nodes
    assert image.task("nginx", "1.25") is not None


def test_children_are_ordered_by_age_and_those_on_their_way_out_left_aside():
    context = FakeContext()
    gatherer = ListGatherer(context)
    context.put(LISTS, list_job("a"))
    owner = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ImageListPullJob", "name": "L", "uid": "uid-L"}
    ages: list[tuple[str, Json]] = [
        ("young", {"creationTimestamp": "2026-01-02T00:00:00Z"}),
        ("old", {"creationTimestamp": "2026-01-01T00:00:00Z"}),
        ("leaving", {"deletionTimestamp": "2026-01-01T00:00:00Z"}),
    ]
    for name, meta in ages:
        context.put(CHILDREN, job(name, meta={"ownerReferences": [owner], **meta}))
    found = gatherer.gather(("ns", "L"), Memory())
    assert found is not None
    assert [child.metadata.name for child in found.children] == ["old", "young"]
    assert "leaving" in found.taken
    assert CHILDREN.owner == IMAGE_LIST_PULL_JOB  # a change of one wakes its list
    assert owner_keys(IMAGE_LIST_PULL_JOB, None, context.table(CHILDREN).get("ns", "old")) == {("ns", "L")}
    assert owner_keys(IMAGE_LIST_PULL_JOB, None, None) == set()
    assert gatherer.gather(("ns", "gone"), Memory()) is None


def test_nodes_take_the_places_of_their_first_pods():
    rolling: Any = {"orderPriority": [{"orderedKey": "n"}]}
    document = {
        "metadata": {"name": "C", "namespace": "ns", "uid": "c", "resourceVersion": "1"},
        "spec": {"updateStrategy": {"rollingUpdate": {"priorityStrategy": rolling}}},
    }
    clonesets = Table[CloneSet]()
    clonesets.apply(decoded(document, CloneSet))
    pods = [pod("a", "n1", labels={"n": "1"}), pod("b", "n2", labels={"n": "3"}), pod("c", "n1", labels={"n": "2"})]
    owner = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "C", "uid": "c", "controller": True}
    made = job(meta={"ownerReferences": [owner]})
    assert node_order(made, pods, clonesets) == {"n2": 0, "n1": 1}
    assert node_order(job(), pods, clonesets) == {}
    assert node_order(made, pods, None) == {}
