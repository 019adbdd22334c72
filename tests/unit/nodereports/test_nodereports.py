"""Reports of a node on containers and events: only on its own pods, and only those that an agent sends."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Container, Pod, PodSpec
from flotilla_common.api.keys import RUNTIME_CONTAINERS_META
from flotilla_common.api.kinds.nodeimage.types import ImageSpec, ImageTag, JobReference, NodeImage, NodeImageSpec
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import POD, Resource
from flotilla_common.control.plan import Outcome, OutcomeKind
from flotilla_common.kube.interface import Unreachable
from flotilla_common.node.reports import EVENTS, PODS, Answer, EventReport, PodReport
from flotilla_common.node.serving import Sender
from flotilla_jobs.node_reports import PUBLISHED_PODS, REPORTS
from tests.support.controller_context import FakeContext

HERE = Sender("node-1", "x", "web")
META = '{"containers":[{"name":"app","containerID":"containerd://1","restartCount":0,"hashes":{"plainHash":7}}]}'


def a_pod(node: str = "node-1", uid: str = "u1", meta: str = "") -> Pod:
    annotations = {RUNTIME_CONTAINERS_META: meta} if meta else {}
    return Pod(
        metadata=ObjectMeta(name="web", namespace="x", uid=uid, resource_version="5", annotations=annotations),
        spec=PodSpec(node_name=node, containers=[Container(name="app")]),
    )


(IMAGES_WATCH,) = REPORTS.watches
JOB = JobReference(kind="ImagePullJob", namespace="x", name="web", uid="j1")
IMAGE = NodeImage(
    metadata=ObjectMeta(name="node-1", uid="n1"),
    spec=NodeImageSpec(images={"nginx": ImageSpec(tags=[ImageTag(tag="1", owner_references=[JOB])])}),
)


async def responder(*pods: Pod) -> FakeContext:
    """Return the responder over these pods and one NodeImage."""
    context = FakeContext()
    await REPORTS.build(context)
    context.put(PUBLISHED_PODS, *pods)
    context.put(IMAGES_WATCH, IMAGE)
    return context


async def tell(context: FakeContext, sender: Sender = HERE, **report: Any) -> Answer | None:
    return await context.tell(PODS, sender, PodReport(**{"uid": "u1", "runtime_containers_meta": META} | report))


async def test_an_accepted_report_is_written_through_the_status() -> None:
    context = await responder(a_pod())
    assert await tell(context) == Answer(accepted=True, resource_version="9")
    (write,) = context.writes
    assert (write.resource, write.subresource, write.uid) == (POD, "status", "u1")
    assert write.body == {"metadata": {"annotations": {RUNTIME_CONTAINERS_META: META}}}


async def test_what_stands_there_already_is_not_written() -> None:
    context = await responder(a_pod(meta=META))
    assert await tell(context) == Answer(accepted=True, resource_version="5")
    assert context.writes == []


async def test_another_replicas_pod_is_left_to_it() -> None:
    context = await responder(a_pod())
    context.mine = False
    assert await tell(context) is None


async def test_a_pod_that_does_not_exist_is_asked_for_once() -> None:
    context = await responder()
    asked: list[str] = []
    read = context.read

    async def noted(resource: Resource, namespace: str, name: str) -> object:
        asked.append(name)
        return await read(resource, namespace, name)

    context.read = noted  # type: ignore[method-assign]
    await REPORTS.build(context)
    for _ in range(3):
        answer = await tell(context)
        assert answer is not None
        assert (answer.accepted, answer.again) == (False, False)
    assert asked == ["web"]


async def test_the_agent_may_hear_of_a_pod_first() -> None:
    context = await responder()
    context.server[POD, "x", "web"] = a_pod()
    answer = await tell(context)
    assert answer is not None
    assert answer.accepted


@pytest.mark.parametrize(
    ("pod", "report", "why"),
    [
        pytest.param(None, {}, "no such pod", id="no pod"),
        pytest.param(a_pod(uid="u2"), {}, "no such pod", id="a namesake"),
        pytest.param(a_pod(node="node-2"), {}, "runs on node node-2", id="on another node"),
        pytest.param(a_pod(), {"runtime_containers_meta": "{"}, "cannot be read", id="no JSON"),
        pytest.param(
            a_pod(), {"runtime_containers_meta": '{"containers":[{"name":"evil"}]}'}, "no container evil", id="stranger"
        ),
        pytest.param(a_pod(), {"runtime_containers_meta": " " * 70_000}, "too large", id="too large"),
    ],
)
async def test_refusals_are_final(pod: Pod | None, report: dict[str, Any], why: str) -> None:
    context = await responder(*([] if pod is None else [pod]))
    answer = await tell(context, **report)
    assert answer is not None
    assert (answer.accepted, answer.again) == (False, False)
    assert why in answer.why
    assert context.writes == []


@pytest.mark.parametrize(
    ("kind", "again"),
    [
        (OutcomeKind.UNKNOWN, True),
        (OutcomeKind.CONFLICT, True),
        (OutcomeKind.THROTTLED, True),
        (OutcomeKind.FENCED, True),
        (OutcomeKind.NOT_FOUND, False),
        (OutcomeKind.INVALID, False),
        (OutcomeKind.DENIED, False),
    ],
)
async def test_a_write_that_did_not_happen(kind: OutcomeKind, again: bool) -> None:
    context = await responder(a_pod())
    context.outcome = Outcome(kind=kind, message="because")
    answer = await tell(context)
    assert answer is not None
    assert (answer.accepted, answer.again) == (False, again)


async def test_while_the_apiserver_is_away_the_report_is_to_come_again() -> None:
    context = await responder()
    context.trouble = Unreachable("away")
    answer = await tell(context)
    assert answer is not None
    assert answer.again


KILLING = {"kind": "Pod", "uid": "u1", "component": "kruise-daemon-crr", "reason": "Killing"}
WANTED = {"kind": "ImagePullJob", "uid": "j1"}
FAILED = {"component": "kruise-daemon-imagepuller", "reason": "PullImageFailed", "type": "Warning"}


async def told(pod: Pod, sender: Sender, **event: str) -> tuple[Answer | None, list[tuple[str, Any, Any]]]:
    context = await responder(pod)
    return await context.tell(EVENTS, sender, msgspec.convert(event, EventReport)), context.events


async def test_an_event_on_a_pod_of_the_node() -> None:
    answer, said = await told(a_pod(), HERE, **KILLING, fieldPath="spec.containers{app}", message="Stopping")
    assert answer == Answer(accepted=True)
    ((component, subject, event),) = said
    assert component == KILLING["component"]
    assert subject.reference()["fieldPath"] == "spec.containers{app}"
    assert (event.reason, event.message, event.warning, event.host) == ("Killing", "Stopping", False, "node-1")


@pytest.mark.parametrize(
    ("pod", "sender", "event", "accepted"),
    [
        pytest.param(a_pod("node-2"), HERE, KILLING, False, id="a pod of another node"),
        pytest.param(a_pod(uid="u2"), HERE, KILLING, False, id="a namesake"),
        pytest.param(a_pod(), HERE, KILLING | {"reason": "Evicted"}, False, id="a reason that agents do not have"),
        pytest.param(a_pod(), HERE, KILLING | {"component": "kubelet"}, False, id="a component that is no agent"),
        pytest.param(a_pod(), HERE, KILLING | {"kind": "Node"}, False, id="another kind"),
        pytest.param(
            a_pod(), Sender("node-1", "", "node-1"), FAILED | {"kind": "NodeImage", "uid": "n1"}, True, id="NodeImage"
        ),
        pytest.param(
            a_pod(), Sender("node-1", "", "node-2"), FAILED | {"kind": "NodeImage", "uid": "n2"}, False, id="another's"
        ),
        pytest.param(a_pod(), HERE, FAILED | {"kind": "ImagePullJob", "uid": "j1"}, True, id="a job that wants it"),
        pytest.param(a_pod(), HERE, FAILED | {"kind": "ImagePullJob", "uid": "j2"}, False, id="any other job"),
        pytest.param(a_pod(), Sender("node-1", "x", "db"), FAILED | WANTED, False, id="the uid of one that wants it"),
        pytest.param(a_pod(), Sender("node-1", "y", "web"), FAILED | WANTED, False, id="its namesake elsewhere"),
    ],
)
async def test_whose_events_are_taken(pod: Pod, sender: Sender, event: dict[str, str], accepted: bool) -> None:
    answer, said = await told(pod, sender, **event)
    assert answer is not None
    assert answer.accepted is accepted
    assert bool(said) is accepted
