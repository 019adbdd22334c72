"""What a node may tell of containers and events: of its own pods, and only what an agent would tell."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Container, Pod, PodSpec
from flotilla_common.api.keys import RUNTIME_CONTAINERS_META
from flotilla_common.api.kinds.nodeimage.types import ImageSpec, ImageTag, JobReference, NodeImage, NodeImageSpec
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Outcome, OutcomeKind
from flotilla_common.kube.interface import Unreachable
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import Answer, EventReport, PodReport
from flotilla_common.node.serving import Sender
from flotilla_jobs.nodereports.containers import ContainerReports
from flotilla_jobs.nodereports.happenings import COMPONENTS, EventReports

HERE = Sender("node-1", "x", "web")
META = '{"containers":[{"name":"app","containerID":"containerd://1","restartCount":0,"hashes":{"plainHash":7}}]}'


def a_pod(node: str = "node-1", uid: str = "u1", meta: str = "") -> Pod:
    annotations = {RUNTIME_CONTAINERS_META: meta} if meta else {}
    return Pod(
        metadata=ObjectMeta(name="web", namespace="x", uid=uid, resource_version="5", annotations=annotations),
        spec=PodSpec(node_name=node, containers=[Container(name="app")]),
    )


class World:
    """The mirror and the executor, as far as reports need them."""

    def __init__(self, pod: Pod | None, outcome: Outcome | None = None) -> None:
        self.pods: Table[Pod] = Table()
        if pod is not None:
            self.pods.apply(pod)
        self.owned = True
        self.away = False
        self.late: Pod | None = None
        self.writes: list[Any] = []
        self.outcome = outcome or Outcome(kind=OutcomeKind.OK, version="9")

    async def read(self, resource: Any, namespace: str, name: str) -> None:
        if self.away:
            raise Unreachable("away")
        if self.late is not None:
            self.pods.apply(self.late)

    async def single(self, subject: Any, action: Any, fence: Any, trace: str) -> Outcome:
        assert fence()
        self.writes.append(action)
        return self.outcome

    async def tell(self, sender: Sender = HERE, **report: Any) -> Answer | None:
        receiver = ContainerReports(pods=self.pods, mirror=self, executor=self, owns=lambda _, __: self.owned)
        return await receiver.receive(sender, PodReport(**{"uid": "u1", "runtime_containers_meta": META} | report))


async def test_an_accepted_report_is_written_through_the_status() -> None:
    world = World(a_pod())
    assert await world.tell() == Answer(accepted=True, resource_version="9")
    (write,) = world.writes
    assert (write.resource, write.subresource, write.uid) == (POD, "status", "u1")
    assert write.body == {"metadata": {"annotations": {RUNTIME_CONTAINERS_META: META}}}


async def test_what_stands_there_already_is_not_written() -> None:
    world = World(a_pod(meta=META))
    assert await world.tell() == Answer(accepted=True, resource_version="5")
    assert world.writes == []


async def test_another_replicas_pod_is_left_to_it() -> None:
    world = World(a_pod())
    world.owned = False
    assert await world.tell() is None


async def test_the_agent_may_hear_of_a_pod_first() -> None:
    world = World(None)
    world.late = a_pod()
    answer = await world.tell()
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
    world = World(pod)
    answer = await world.tell(**report)
    assert answer is not None
    assert (answer.accepted, answer.again) == (False, False)
    assert why in answer.why
    assert world.writes == []


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
    answer = await World(a_pod(), Outcome(kind=kind, message="because")).tell()
    assert answer is not None
    assert (answer.accepted, answer.again) == (False, again)


async def test_while_the_apiserver_is_away_the_report_is_to_come_again() -> None:
    world = World(None)
    world.away = True
    answer = await world.tell()
    assert answer is not None
    assert answer.again


class Recorder:
    """What was recorded."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, Any]] = []

    def record(self, subject: Any, notice: Any, error: str = "") -> None:
        self.said.append((subject, notice))


JOB = JobReference(kind="ImagePullJob", namespace="x", name="web", uid="j1")
IMAGE = NodeImage(
    metadata=ObjectMeta(name="node-1", uid="n1"),
    spec=NodeImageSpec(images={"nginx": ImageSpec(tags=[ImageTag(tag="1", owner_references=[JOB])])}),
)
KILLING = {"kind": "Pod", "uid": "u1", "component": "kruise-daemon-crr", "reason": "Killing"}
FAILED = {"component": "kruise-daemon-imagepuller", "reason": "PullImageFailed", "type": "Warning"}


async def told(pod: Pod, sender: Sender, **event: str) -> tuple[Answer | None, list[tuple[Any, Any]]]:
    pods, images = Table[Pod](), Table[NodeImage]()
    pods.apply(pod)
    images.apply(IMAGE)
    recorder = Recorder()
    receiver = EventReports(
        pods=pods, images=images, recorders=dict.fromkeys(COMPONENTS, recorder), owns=lambda _, __: True
    )
    return await receiver.receive(sender, msgspec.convert(event, EventReport)), recorder.said


async def test_an_event_on_a_pod_of_the_node() -> None:
    answer, said = await told(a_pod(), HERE, **KILLING, fieldPath="spec.containers{app}", message="Stopping")
    assert answer == Answer(accepted=True)
    ((subject, notice),) = said
    assert subject.reference()["fieldPath"] == "spec.containers{app}"
    assert (notice.reason, notice.message, notice.warning, notice.host) == ("Killing", "Stopping", False, "node-1")


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
    ],
)
async def test_whose_events_are_taken(pod: Pod, sender: Sender, event: dict[str, str], accepted: bool) -> None:
    answer, said = await told(pod, sender, **event)
    assert answer is not None
    assert answer.accepted is accepted
    assert bool(said) is accepted
