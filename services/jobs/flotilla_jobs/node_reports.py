"""Answers reports of node agents beside statuses of our own kinds: container metadata, events (nodeagent.md §7, §8).

What an agent reports about the containers of a pod is written into an annotation of the pod (common.md §9.8), through
the pod's status subresource, as all that the kubelet's side writes to a pod. A node may only report on pods that run on
it. It can neither flood the cluster with events nor put them on any object: only the components and reasons that agents
use are accepted, and only on objects that concern the node.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.keys import RUNTIME_CONTAINERS_META
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage
from flotilla_common.api.meta import Model
from flotilla_common.api.resources import POD, Resource
from flotilla_common.control.controller_context import ResponderContext
from flotilla_common.control.events import Recorder
from flotilla_common.control.executor import Executor
from flotilla_common.control.fence import Fence
from flotilla_common.control.plan import Event, Intent, ObjectRef, Outcome, OutcomeKind, PatchType
from flotilla_common.control.spec import Responder
from flotilla_common.control.watches import AccessRule, Watch
from flotilla_common.control.writes import patch_of
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import EVENTS, PODS, Answer, EventReport, PodReport
from flotilla_common.node.serving import Lookups, Sender, TooOften
from flotilla_jobs.enabled import reports_off

SIZE_LIMIT = 64 << 10
"""Maximum size of the annotation in bytes, enough for 250 containers; an agent never writes more."""

_HOPELESS = frozenset({OutcomeKind.NOT_FOUND, OutcomeKind.GONE, OutcomeKind.INVALID, OutcomeKind.DENIED})

COMPONENTS: Mapping[str, frozenset[str]] = {
    "kruise-daemon-imagepuller": frozenset({"PullImageSucceed", "PullImageFailed"}),
    "kruise-daemon-crr": frozenset({"Killing", "FailedPreStopHook"}),
    "kruise-daemon-containermeta": frozenset({"Killing", "FailedPreStopHook"}),
    "kruise-daemon-podprobe": frozenset({"KruiseProbeSucceeded", "KruiseProbeFailed"}),
}
"""Reasons by component (nodeagent.md §8)."""

MESSAGE_LIMIT = 1024

PATH_LIMIT = 128

PUBLISHED_PODS = Watch(POD, Pod)
"""Not mirrored: a report concerns one pod, which the bus has."""

_IMAGES = Watch(NODE_IMAGE, NodeImage, optional=True)  # without pulls nothing waits for the kind


class _Named(Model):
    name: str


class _Meta(Model):
    containers: list[_Named] = []


class ContainerReports(msgspec.Struct, frozen=True, kw_only=True):
    """Checks and writes reports about pods."""

    pod: Callable[[str, str], Awaitable[Pod | None]]  # as the bus has it
    lookups: Lookups
    executor: Executor
    fence: Callable[[str, str], Fence]  # may this replica write for namespace and name?

    async def receive(self, sender: Sender, report: PodReport) -> Answer | None:
        """Return the answer to a report, or None if another replica answers it."""
        fence = self.fence(sender.namespace, sender.name)
        if not fence.may_send():
            return None
        try:
            pod = await self._pod(sender, report.uid)
        except (ApiError, Unreachable, TooOften) as error:
            return Answer(why=f"cannot read from the apiserver: {error}", again=True)
        if why := problem(pod, sender, report):
            return Answer(why=why)
        assert pod is not None
        if pod.metadata.annotations.get(RUNTIME_CONTAINERS_META) == report.runtime_containers_meta:
            return Answer(accepted=True, resource_version=pod.metadata.resource_version)
        return _answer(await self._write(pod, report, fence))

    async def _pod(self, sender: Sender, uid: str) -> Pod | None:
        """Return the pod of this uid, reading it from the apiserver if the agent saw it before the watcher did."""
        key = (sender.namespace, sender.name)
        published = await self.pod(*key)

        def meant(read: object) -> Pod | None:
            pod = read if isinstance(read, Pod) else published
            return pod if pod is not None and pod.metadata.uid == uid else None

        return await self.lookups.find(sender.node, POD, key, uid, meant)

    async def _write(self, pod: Pod, report: PodReport, fence: Fence) -> Outcome:
        meta = pod.metadata
        patch = patch_of(
            POD,
            meta,
            Intent.UPDATE,
            "container metadata from the node's agent",
            body={"metadata": {"annotations": {RUNTIME_CONTAINERS_META: report.runtime_containers_meta}}},
            patch_type=PatchType.STRATEGIC,
            subresource="status",
        )
        return await self.executor.single(ObjectRef.of(POD, meta), patch, fence, meta.uid[:8])


def problem(pod: Pod | None, sender: Sender, report: PodReport) -> str:
    """Return why the report is refused, or "" if it is accepted."""
    if pod is None:
        return f"there is no such pod with uid {report.uid}"
    if pod.spec.node_name != sender.node:
        return f"the pod runs on node {pod.spec.node_name}"
    if len(report.runtime_containers_meta) > SIZE_LIMIT:
        return "the annotation is too large"
    try:
        meta = read_json(report.runtime_containers_meta, _Meta)
    except ValueError as error:
        return f"the annotation cannot be read: {error}"
    unknown = {entry.name for entry in meta.containers} - {container.name for container in pod.spec.containers}
    return f"the pod has no container {min(unknown)}" if unknown else ""


def _answer(outcome: Outcome) -> Answer:
    if outcome.ok:
        return Answer(accepted=True, resource_version=outcome.version)
    return Answer(why=f"{outcome.kind}: {outcome.message}", again=outcome.kind not in _HOPELESS)


class EventReports(msgspec.Struct, frozen=True, kw_only=True):
    """Checks and records events of agents."""

    pod: Callable[[str, str], Awaitable[Pod | None]]  # as the bus has it
    images: Table[NodeImage]
    recorders: Mapping[str, Recorder]  # by component
    owns: Callable[[str, str], bool]  # does this replica answer for namespace and name?

    async def receive(self, sender: Sender, report: EventReport) -> Answer | None:
        """Return the answer to a report, or None if another replica answers it."""
        if not self.owns(sender.namespace, sender.name):
            return None
        if report.reason not in COMPONENTS.get(report.component, frozenset()):
            return Answer(why=f"{report.component} has no event {report.reason}")
        resource = await self._concerned(sender, report)
        if resource is None:
            return Answer(why=f"{report.kind} {sender.name} does not concern this node")
        subject = ObjectRef(
            resource, sender.namespace, sender.name, report.uid, field_path=report.field_path[:PATH_LIMIT]
        )
        event = Event(report.reason, report.message[:MESSAGE_LIMIT], warning=report.type == "Warning", host=sender.node)
        self.recorders[report.component].record(subject, event)
        return Answer(accepted=True)

    async def _concerned(self, sender: Sender, report: EventReport) -> Resource | None:
        """Return the kind of the object if it concerns the node, or None."""
        if report.kind == POD.kind:
            pod = await self.pod(sender.namespace, sender.name)
            here = pod is not None and pod.metadata.uid == report.uid and pod.spec.node_name == sender.node
            return POD if here else None
        image = self.images.get("", sender.node)
        if image is None:
            return None
        if report.kind == NODE_IMAGE.kind:
            own = ("", sender.node, image.metadata.uid)
            return NODE_IMAGE if (sender.namespace, sender.name, report.uid) == own else None
        job = (sender.namespace, sender.name, report.uid)
        tags = (tag for spec in image.spec.images.values() for tag in spec.tags)
        owned = any((owner.namespace, owner.name, owner.uid) == job for tag in tags for owner in tag.owner_references)
        return IMAGE_PULL_JOB if report.kind == IMAGE_PULL_JOB.kind and owned else None


async def _answer_reports(context: ResponderContext) -> None:
    pod, images = partial(context.newest, PUBLISHED_PODS), context.table(_IMAGES)
    recorders = {component: context.recorder(component) for component in COMPONENTS}
    executor = context.executor(recorders["kruise-daemon-containermeta"])
    containers = ContainerReports(pod=pod, lookups=Lookups(context.read), executor=executor, fence=context.fence)
    events = EventReports(pod=pod, images=images, recorders=recorders, owns=context.owns)
    await context.answer(PODS, PodReport, containers.receive)
    await context.answer(EVENTS, EventReport, events.receive)


REPORTS = Responder(
    name="node-reports",
    watches=(_IMAGES,),
    access=(AccessRule(POD, ("get",)), AccessRule(POD, ("patch",), "status")),
    answers=(PODS, EVENTS),
    off=reports_off,
    build=_answer_reports,
)
