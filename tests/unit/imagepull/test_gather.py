"""What the gatherers see: owners that are surely gone, secrets that are not there, lists that still run."""

from typing import Any

import pytest

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.cloneset.types import CloneSet
from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.api.secrets import Secret
from flotilla_common.control.controller import Memory
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import NodeImageReport
from flotilla_jobs.asking import Asking
from flotilla_jobs.imagelistpull.wiring import Gatherer as ListGatherer
from flotilla_jobs.imagepull.gather import LINKS, NAMESPACE, Gatherer, PullTables, links, namespace_of
from flotilla_jobs.imagepull.order import node_order
from flotilla_jobs.imagepull.snapshot import Options, PullJobSnapshot
from flotilla_jobs.imagepull.triggers import INDEXES
from flotilla_jobs.nodeimage.gather import OWNER, owner_uids
from flotilla_jobs.nodeimage.gather import Gatherer as NodeGatherer
from flotilla_jobs.nodeimage.snapshot import NodeImageSnapshot
from flotilla_jobs.nodeimage.snapshot import Options as NodeOptions
from tests.support.fake_clock import FakeClock
from tests.unit.imagepull.build import (
    Json,
    begun,
    copy_of,
    decoded,
    fresh,
    job,
    list_job,
    node,
    node_image,
    pod,
    secret,
    tag,
)

CONFIG = "kruise-daemon-config"


class Nodes:
    """A node gatherer over its tables; the apiserver knows what is in `really`."""

    def __init__(self) -> None:
        self.nodes, self.images = Table[Node](), Table[NodeImage]({OWNER: owner_uids})
        self.jobs, self.secrets = Table[ImagePullJob](), Table[Secret]()
        self.really: dict[tuple[str, str], ImagePullJob] = {}
        self.again: list[tuple[str, str]] = []
        self.report: NodeImageReport | None = None
        asking = Asking(read=self._read, held=self._held, clock=FakeClock())
        self.gatherer = NodeGatherer(
            nodes=self.nodes,
            images=self.images,
            jobs=self.jobs,
            secrets=self.secrets,
            secrets_namespace=CONFIG,
            report=lambda _: self.report,
            asking=asking,
            again=lambda *key: self.again.append(key),
            options=NodeOptions(),
        )
        self.asking = asking

    async def _read(self, namespace: str, name: str) -> None:
        if (found := self.really.get((namespace, name))) is not None:
            self.jobs.apply(found)

    def _held(self, key: tuple[str, str], uid: str) -> bool:
        found = self.jobs.get(*key)
        return found is not None and found.metadata.uid == uid

    def gathered(self, name: str = "n1") -> NodeImageSnapshot:
        found = self.gatherer.gather(("", name), Memory())
        assert found is not None
        return found

    async def answered(self) -> None:
        """Let the questions be answered."""
        for task in list(self.asking._asking.values()):
            await task


async def test_an_owner_is_lost_only_when_the_apiserver_says_so():
    bench = Nodes()
    bench.images.apply(node_image("n1", [tag("J", "K")]))
    bench.really["ns", "K"] = job("K")
    assert bench.gathered().lost_owners == frozenset()
    await bench.answered()
    assert bench.again == [("", "n1"), ("", "n1")]
    assert bench.gathered().lost_owners == {"uid-J"}


async def test_38_a_namesake_is_another_job():
    bench = Nodes()
    bench.images.apply(node_image("n1", [tag("J")]))
    bench.jobs.apply(job("J", meta={"uid": "newer"}))
    assert bench.gathered().lost_owners == frozenset()
    await bench.answered()
    assert bench.gathered().lost_owners == {"uid-J"}


def test_a_job_that_was_seen_to_go_is_lost_at_once():
    bench = Nodes()
    bench.images.apply(node_image("n1", [tag("J")]))
    bench.jobs.apply(job())
    assert bench.gathered().lost_owners == frozenset()
    bench.jobs.remove("ns", "J", "uid-J")
    assert bench.gathered().lost_owners == {"uid-J"}


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


class Jobs:
    """A job gatherer over its tables."""

    def __init__(self, *images: NodeImage, sources: Json | None = None) -> None:
        self.tables = PullTables(
            jobs=Table[ImagePullJob](INDEXES),
            lists=Table[ImageListPullJob](),
            images=Table[NodeImage](),
            pods=Table[Pod]({NAMESPACE: namespace_of}),
            secrets=Table[Secret]({LINKS: links}),
            clonesets=None,
        )
        for image in images:
            self.tables.images.apply(image)
        self.gatherer = Gatherer(
            self.tables, lambda job: {name: (sources or {})[name] for name in job.spec.pull_secrets}, Options()
        )

    def gathered(self, one: ImagePullJob) -> PullJobSnapshot:
        self.tables.jobs.apply(one)
        found = self.gatherer.gather(("ns", one.metadata.name), Memory())
        assert found is not None
        return found


def test_an_unreadable_selector_is_a_problem_and_not_a_crash():
    found = Jobs(*fresh()).gathered(job(selector={"matchLabels": {"a b": ""}}))
    assert "matchLabels" in found.problem
    assert found.nodes == ()


def test_copies_are_those_of_wanted_sources_and_those_in_use():
    bench = Jobs(sources={"s1": secret()})
    for copy in (copy_of("s1", name="b"), copy_of("old", "ns/J", name="a"), copy_of("s2", "ns/X", name="c")):
        bench.tables.secrets.apply(copy)
    found = bench.gathered(job(pullSecrets=["s1"]))
    assert [copy.metadata.name for copy in found.copies] == ["a", "b"]
    assert found.sources == {"s1": secret()}
    assert "c" in found.taken
    assert "d" not in found.taken


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
        bench.tables.lists.apply(parent)
    owner = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImageListPullJob", "name": "L", "uid": "uid-L"}
    one = job(
        meta={"ownerReferences": [owner | {"controller": True}]}, status={"completionTime": "2026-01-01T00:00:00Z"}
    )
    assert bench.gathered(one).of_running_list == running


def test_26_a_table_never_goes_back_behind_our_own_write():
    bench = Jobs(node_image("n1", [tag("J")], resourceVersion="9"))
    bench.tables.images.apply(node_image("n1", resourceVersion="8"))
    (image,) = bench.gathered(job()).nodes
    assert image.task("nginx", "1.25") is not None


def test_children_are_ordered_by_age_and_those_on_their_way_out_left_aside():
    lists, jobs = Table[ImageListPullJob](), Table[ImagePullJob](INDEXES)
    lists.apply(list_job("a"))
    owner = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ImageListPullJob", "name": "L", "uid": "uid-L"}
    ages: list[tuple[str, Json]] = [
        ("young", {"creationTimestamp": "2026-01-02T00:00:00Z"}),
        ("old", {"creationTimestamp": "2026-01-01T00:00:00Z"}),
        ("leaving", {"deletionTimestamp": "2026-01-01T00:00:00Z"}),
    ]
    for name, meta in ages:
        jobs.apply(job(name, meta={"ownerReferences": [owner], **meta}))
    gatherer = ListGatherer(lists, jobs)
    found = gatherer.gather(("ns", "L"), Memory())
    assert found is not None
    assert [child.metadata.name for child in found.children] == ["old", "young"]
    assert "leaving" in found.taken
    assert gatherer.keys_of(jobs.get("ns", "old")) == [("ns", "L")]
    assert gatherer.keys_of(None) == []


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
