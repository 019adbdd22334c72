"""What the gatherers of the jobs' planners hand on, and to whom a change matters."""

from typing import Any, cast

import pytest

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.cloneset.types import CloneSet
from flotilla_common.api.kinds.containerrecreaterequest.types import ContainerRecreateRequest
from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NodeImage, NodeImageStatus
from flotilla_common.api.secrets import Secret
from flotilla_common.control.controller import Memory
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import NodeImageReport, RecreateReport
from flotilla_jobs.asking import Asking
from flotilla_jobs.containerrecreate.gather import POD_UID, open_pod_uid
from flotilla_jobs.containerrecreate.gather import Gatherer as RecreateGatherer
from flotilla_jobs.imagepull.gather import LINKS, NAMESPACE, Gatherer, PullTables, links, namespace_of
from flotilla_jobs.imagepull.snapshot import Options, PullJobSnapshot
from flotilla_jobs.imagepull.triggers import INDEXES
from flotilla_jobs.nodeimage.gather import Gatherer as NodeGatherer
from flotilla_jobs.nodeimage.snapshot import Options as NodeOptions
from tests.unit.imagepull.build import copy_of, decoded, fresh, job, node, node_image, pod, secret, tag
from tests.unit.recreate.world import pod_document, request_document


class Apiserver:
    """Asked whether something is surely gone; calls back at once."""

    def __init__(self, *, gone: bool = True) -> None:
        self.gone = gone
        self.asked: list[tuple[Any, str]] = []

    def surely_gone(self, key: Any, uid: str, asker: Any, again: Any) -> bool:
        self.asked.append((key, uid))
        again(*asker)
        return self.gone


class Requests:
    """A gatherer of requests over its tables."""

    def __init__(self, *requests: Any, pod: Any = None) -> None:
        self.requests = Table[ContainerRecreateRequest]({POD_UID: open_pod_uid})
        self.pods = Table[Pod]()
        self.apiserver = Apiserver()
        self.unreadable = set[str]()
        self.again: list[tuple[str, str]] = []
        self.report = RecreateReport(uid="uid-r", phase="Recreating")
        self.gatherer = RecreateGatherer(
            requests=self.requests,
            pods=self.pods,
            report=lambda request: self.report if request.metadata.name == "r" else None,
            asking=cast("Asking", self.apiserver),
            unreadable=self.unreadable.__contains__,
            again=lambda *key: self.again.append(key),
        )
        for request in requests:
            self.requests.apply(decoded(request, ContainerRecreateRequest))
        if pod is not None:
            self.pods.apply(decoded(pod, Pod))

    def gathered(self, name: str = "r") -> Any:
        return self.gatherer.gather(("ns", name), Memory())


def request(name: str, age: int | None = 0, phase: str = "", **metadata: Any) -> Any:
    document = request_document("app", name=name)
    document["metadata"] |= {"creationTimestamp": None if age is None else f"2026-03-01T08:00:0{9 - age}Z", **metadata}
    return document | {"status": {"phase": phase}}


def test_a_request_with_its_pod() -> None:
    bench = Requests(request("r"), pod=pod_document())
    found = bench.gathered()
    assert (found.request.metadata.name, found.pod.metadata.name, found.pod_known) == ("r", "p", True)
    assert (found.report, found.ahead, bench.apiserver.asked) == (bench.report, (), [])
    assert bench.gathered("gone") is None
    assert bench.gatherer.keys() == [("ns", "r")]


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        (None, True),
        (pod_document(uid="p2"), True),
        (
            pod_document() | {"metadata": {**pod_document()["metadata"], "deletionTimestamp": "2026-03-01T08:00:00Z"}},
            False,
        ),
    ],
    ids=["missing", "namesake", "terminating"],
)
def test_a_pod_that_is_not_there_is_asked_for(held: Any, asked: bool) -> None:
    bench = Requests(request("r"), pod=held)
    found = bench.gathered()
    assert (found.pod, found.pod_known) == (None, True)
    assert bench.apiserver.asked == ([(("ns", "p"), "p1")] if asked else [])
    assert bench.again == ([("ns", "r")] if asked else [])


def test_what_is_not_sure_is_not_known() -> None:
    bench = Requests(request("r"))
    bench.apiserver.gone = False
    assert not bench.gathered().pod_known
    bench = Requests(request("r"))
    bench.unreadable.add("p1")
    assert not bench.gathered().pod_known
    assert bench.apiserver.asked == []


def test_requests_ahead_are_those_at_work_and_older_ones() -> None:
    others = [
        request("older", 5),
        request("younger", 1),
        request("at-work", 1, "Recreating"),
        request("over", 6, "Completed"),
        request("zz-same-age", 3),
        request("aa-same-age", 3),
        request("ageless", None),
    ]
    bench = Requests(request("r", 3), *others, pod=pod_document())
    assert bench.gathered().ahead == ("aa-same-age", "ageless", "at-work", "older")


def test_a_change_of_a_pod_concerns_its_open_requests() -> None:
    holding = request("holding", 0, "Completed", finalizers=["crr.apps.kruise.io/unready-acquired"])
    bench = Requests(request("r"), request("over", 0, "Completed"), holding)
    ours, other = decoded(pod_document(), Pod), decoded(pod_document(uid="p2"), Pod)
    keys = {("ns", "r"), ("ns", "holding")}
    assert bench.gatherer.keys_of(None, ours) == bench.gatherer.keys_of(ours, None) == keys
    assert bench.gatherer.keys_of(ours, other) == keys
    assert bench.gatherer.keys_of(other, other) == set()


CLONESET = {
    "metadata": {"name": "C", "namespace": "ns", "uid": "c", "resourceVersion": "1"},
    "spec": {"updateStrategy": {"rollingUpdate": {"priorityStrategy": {"orderPriority": [{"orderedKey": "n"}]}}}},
}
BY_CLONESET = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "C", "uid": "c", "controller": True}


def pull_job(one: ImagePullJob, *, namespace: str = "daemons") -> PullJobSnapshot:
    """The job among nodes n1 to n5, three pods, and secrets."""
    tables = PullTables(
        jobs=Table[ImagePullJob](INDEXES),
        lists=Table[ImageListPullJob](),
        images=Table[NodeImage](),
        pods=Table[Pod]({NAMESPACE: namespace_of}),
        secrets=Table[Secret]({LINKS: links}),
        clonesets=Table[CloneSet](),
    )
    tables.jobs.apply(one)
    for image in fresh():
        tables.images.apply(image)
    for name, where, place in (("a", "n1", "1"), ("b", "n2", "2"), ("c", "n3", "3")):
        tables.pods.apply(pod(name, where, labels={"app": "web", "n": place}))
    tables.pods.apply(pod("d", "n4", labels={"app": "web"}, namespace="elsewhere"))
    for copy in (copy_of("s1", "ns/A"), copy_of("s2", "ns/J")):
        tables.secrets.apply(copy)
    assert tables.clonesets is not None
    tables.clonesets.apply(decoded(CLONESET, CloneSet))
    gatherer = Gatherer(tables, lambda _: {"s1": secret()}, Options(secrets_namespace=namespace))
    assert gatherer.keys() == [("ns", one.metadata.name)]
    assert gatherer.gather(("ns", "gone"), Memory()) is None
    found = gatherer.gather(("ns", one.metadata.name), Memory())
    assert found is not None
    return found


def test_a_job_of_a_workload_pulls_in_its_order() -> None:
    found = pull_job(job(podSelector={"matchLabels": {"app": "web"}}, meta={"ownerReferences": [BY_CLONESET]}))
    assert [image.metadata.name for image in found.nodes] == ["n1", "n2", "n3"]
    assert found.order == {"n3": 0, "n2": 1, "n1": 2}
    assert found.sources == {"s1": secret()}
    assert (found.problem, found.of_running_list, found.options.secrets_namespace) == ("", False, "daemons")


def test_a_job_that_is_over_needs_only_the_copies_that_it_uses() -> None:
    found = pull_job(job(status={"completionTime": "2026-01-01T00:00:00Z"}))
    assert (found.nodes, found.order, found.sources) == ((), {}, {})
    assert [copy.metadata.name for copy in found.copies] == ["s2-copy"]


def test_secrets_of_the_namespace_of_copies_are_not_read() -> None:
    assert pull_job(job(pullSecrets=["s1"]), namespace="ns").sources == {}


def test_a_node_with_its_image_and_what_its_agent_said() -> None:
    nodes, images = Table[Node](), Table[NodeImage]()
    nodes.apply(node("n1"))
    images.apply(node_image("n1", [tag("J")]))
    told = NodeImageReport(uid="uid-n1", status=NodeImageStatus(desired=3))
    apiserver, again = Apiserver(), list[tuple[str, str]]()
    options = NodeOptions()
    gatherer = NodeGatherer(
        nodes=nodes,
        images=images,
        jobs=Table[ImagePullJob](),
        secrets=Table[Secret](),
        secrets_namespace="daemons",
        report=lambda image: told if image.metadata.name == "n1" else None,
        asking=cast("Asking", apiserver),
        again=lambda *key: again.append(key),
        options=options,
    )
    found = gatherer.gather(("", "n1"), Memory())
    assert found is not None
    assert (found.name, found.node, found.image) == ("n1", nodes.get("", "n1"), images.get("", "n1"))
    assert (found.report, found.lost_owners, found.options is options) == (told.status, {"uid-J"}, True)
    assert (apiserver.asked, again) == ([(("ns", "J"), "uid-J")], [("", "n1")])
