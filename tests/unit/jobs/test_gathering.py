"""The snapshots of the gatherers of the jobs' planners, and the keys that changes wake."""

from typing import Any

import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset.types import CloneSet
from flotilla_common.api.kinds.containerrecreaterequest.types import ContainerRecreateRequest
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NodeImageStatus
from flotilla_common.api.resources import SECRET
from flotilla_common.control.keystate import Memory
from flotilla_common.node.reports import NodeImageReport, RecreateReport
from flotilla_jobs.containerrecreate.controller import CONTROLLER as RECREATE_CONTROLLER
from flotilla_jobs.containerrecreate.controller import PODS, REQUESTS
from flotilla_jobs.imagepull.controller import CLONE_SETS, COPIES, IMAGES, JOBS, Gatherer
from flotilla_jobs.imagepull.controller import PODS as PULL_PODS
from flotilla_jobs.imagepull.snapshot import Options, PullJobSnapshot
from flotilla_jobs.nodeimage.controller import IMAGES as NODE_IMAGES
from flotilla_jobs.nodeimage.controller import NODES
from flotilla_jobs.nodeimage.controller import Gatherer as NodeGatherer
from flotilla_jobs.nodeimage.snapshot import Options as NodeOptions
from tests.support.controller_context import FakeContext
from tests.testkit.documents import decoded
from tests.unit.imagepull.build import copy_of, fresh, job, node, node_image, pod, secret, tag
from tests.unit.recreate.world import pod_document, request_document


class Requests:
    """A gatherer of requests over its tables."""

    def __init__(self, *requests: Any, pod: Any = None) -> None:
        self.context = FakeContext()
        self.gatherer = self.context.build(RECREATE_CONTROLLER)
        self.report = RecreateReport(uid="uid-r", phase="Recreating")
        self.context.reports["r"] = self.report
        self.context.put(REQUESTS, *(decoded(request, ContainerRecreateRequest) for request in requests))
        if pod is not None:
            self.context.put(PODS, decoded(pod, Pod))

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
    assert (found.report, found.ahead, bench.context.asked) == (bench.report, (), [])
    assert bench.gathered("gone") is None


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
    assert bench.context.asked == ([(("ns", "p"), "p1")] if asked else [])
    assert bench.context.replanned == ([("ns", "r")] if asked else [])


def test_what_is_not_sure_is_not_known() -> None:
    bench = Requests(request("r"))
    bench.context.gone = False
    assert not bench.gathered().pod_known


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
    assert bench.gatherer.of_pod(None, ours) == bench.gatherer.of_pod(ours, None) == keys
    assert bench.gatherer.of_pod(ours, other) == keys
    assert bench.gatherer.of_pod(other, other) == set()
    bench.context.put(PODS, ours)
    assert sorted(bench.context.woken) == sorted(keys)


CLONESET = {
    "metadata": {"name": "C", "namespace": "ns", "uid": "c", "resourceVersion": "1"},
    "spec": {"updateStrategy": {"rollingUpdate": {"priorityStrategy": {"orderPriority": [{"orderedKey": "n"}]}}}},
}
BY_CLONESET = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "C", "uid": "c", "controller": True}


async def pull_job(one: ImagePullJob, *, namespace: str = "daemons") -> PullJobSnapshot:
    """Return the job's snapshot among nodes n1 to n5, three pods, and the secrets that it names."""
    context = FakeContext(gates="PreDownloadImageForInPlaceUpdate=true")
    gatherer = Gatherer(context, Options(secrets_namespace=namespace))
    context.put(JOBS, one)
    context.put(IMAGES, *fresh())
    for name, where, place in (("a", "n1", "1"), ("b", "n2", "2"), ("c", "n3", "3")):
        context.put(PULL_PODS, pod(name, where, labels={"app": "web", "n": place}))
    context.put(PULL_PODS, pod("d", "n4", labels={"app": "web"}, namespace="elsewhere"))
    context.put(COPIES, copy_of("s1", "ns/A"), copy_of("s2", "ns/J"))
    context.put(CLONE_SETS, decoded(CLONESET, CloneSet))
    context.server[SECRET, "ns", "s1"] = secret()
    assert gatherer.gather(("ns", "gone"), Memory()) is None
    key = ("ns", one.metadata.name)
    first = gatherer.gather(key, Memory())
    assert first is not None
    assert first.sources == {}
    await context.work()
    found = gatherer.gather(key, Memory())
    assert found is not None
    assert not found.sources or context.replanned == [key]
    return found


async def test_a_job_of_a_workload_pulls_in_its_order() -> None:
    by_pods = {"podSelector": {"matchLabels": {"app": "web"}}, "pullSecrets": ["s1"]}
    found = await pull_job(job(**by_pods, meta={"ownerReferences": [BY_CLONESET]}))
    assert [image.metadata.name for image in found.nodes] == ["n1", "n2", "n3"]
    assert found.order == {"n3": 0, "n2": 1, "n1": 2}
    assert found.sources == {"s1": secret()}
    assert (found.problem, found.of_running_list, found.options.secrets_namespace) == ("", False, "daemons")


async def test_a_job_that_is_over_needs_only_the_copies_that_it_uses() -> None:
    over = {"completionTime": "2026-01-01T00:00:00Z"}
    for one in (job(status=over), job(pullSecrets=["s3"], status=over)):
        found = await pull_job(one)
        assert (found.nodes, found.order, found.sources) == ((), {}, {})
        assert [copy.metadata.name for copy in found.copies] == ["s2-copy"]


async def test_secrets_of_the_namespace_of_copies_are_not_read() -> None:
    assert (await pull_job(job(pullSecrets=["s1"]), namespace="ns")).sources == {}


def test_a_node_with_its_image_and_what_its_agent_said() -> None:
    context, options = FakeContext(), NodeOptions()
    gatherer = NodeGatherer(context, options)
    context.put(NODES, node("n1"))
    context.put(NODE_IMAGES, node_image("n1", [tag("J")]))
    told = NodeImageReport(uid="uid-n1", status=NodeImageStatus(desired=3))
    context.reports["n1"] = told
    found = gatherer.gather(("", "n1"), Memory())
    assert found is not None
    assert (found.name, found.node, found.image) == (
        "n1",
        context.table(NODES).get("", "n1"),
        context.table(NODE_IMAGES).get("", "n1"),
    )
    assert (found.report, found.lost_owners, found.options is options) == (told.status, {"uid-J"}, True)
    assert (context.asked, context.replanned) == ([(("ns", "J"), "uid-J")], [("", "n1")])


def test_a_report_of_another_kind_is_none() -> None:
    """A wiring stores reports by the controller's declared type; a gatherer ignores those of another type."""
    bench = Requests(request("r"), pod=pod_document())
    bench.context.reports["r"] = NodeImageReport(uid="uid-r", status=NodeImageStatus())
    assert bench.gathered().report is None
