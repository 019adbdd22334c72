"""The ContainerRecreateRequest controller: what it watches and writes, and whose reports it accepts."""

from collections.abc import Iterable

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, member
from flotilla_common.api.keys import RECREATE_NODE_NAME, RECREATE_POD_UID, RECREATE_UNREADY
from flotilla_common.api.kinds.containerrecreaterequest.types import (
    COMPLETED,
    RECREATE_REQUEST,
    RECREATING,
    ContainerRecreateRequest,
)
from flotilla_common.api.resources import POD
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.report_buffer import StatusReports
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Near, Pods, Trigger, Watch
from flotilla_common.node.reports import RECREATE_REQUESTS, RecreateReport
from flotilla_common.node.serving import Sender
from flotilla_jobs.containerrecreate import merge
from flotilla_jobs.containerrecreate.plan import plan
from flotilla_jobs.containerrecreate.snapshot import RecreateSnapshot, pod_uid

POD_UID = "pod"
"""Index: requests that a change of their pod can concern, by the pod's uid."""


def open_pod_uid(request: ContainerRecreateRequest) -> Iterable[str]:
    """Return the pod of a request that is not completed, or that still keeps the pod not ready."""
    is_open = request.status.phase != COMPLETED or RECREATE_UNREADY in request.metadata.finalizers
    return [pod_uid(request)] if is_open else []


def is_its_pod(request: Json, pod: Json) -> bool:
    """Report whether the request is for this pod."""
    return member(request, "metadata", "labels").get(RECREATE_POD_UID) == member(pod, "metadata").get("uid")


REQUESTS = Watch(
    RECREATE_REQUEST,
    ContainerRecreateRequest,
    indexes={POD_UID: open_pod_uid},
    writes=("delete", "patch"),
    subresources=("status",),
)


def _of_open_request(request: ContainerRecreateRequest) -> Iterable[str]:
    return (request.metadata.namespace,) if open_pod_uid(request) else ()


PODS = Watch(
    POD,
    Pod,
    subresources=("status",),
    conditional=True,
    pods=Pods(near=(Near(REQUESTS, _of_open_request),)),
    concerns=is_its_pod,
)


class Gatherer:
    """Builds the snapshot of one request.

    A request ends for good when its pod is gone, so a pod that the mirror lacks is read from the apiserver first.
    """

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._requests = context.table(REQUESTS)
        self._pods = context.table(PODS)

    def of_pod(self, old: Pod | None, new: Pod | None) -> set[Key]:
        """Return the requests that a change of a pod concerns."""
        uids = {pod.metadata.uid for pod in (old, new) if pod is not None}
        requests = [request for uid in uids for request in self._requests.by_index(POD_UID, uid)]
        return {request.metadata.key for request in requests}

    def gather(self, key: Key, memory: Memory) -> RecreateSnapshot | None:
        """Return the request and its surroundings, or None if it does not exist."""
        request = self._requests.get(*key)
        if request is None:
            return None
        pod = self._pods.get(key[0], request.spec.pod_name)
        is_meant = pod is not None and pod.metadata.uid == pod_uid(request)
        leaving = pod is None or pod.metadata.deletion_timestamp is not None
        report = self._context.reported(request)
        return RecreateSnapshot(
            request=request,
            pod=pod if is_meant and not leaving else None,
            pod_known=is_meant
            or not open_pod_uid(request)
            or self._context.confirm_deleted(PODS, (key[0], request.spec.pod_name), pod_uid(request), key),
            report=report if isinstance(report, RecreateReport) else None,
            ahead=self._ahead(request),
        )

    def _ahead(self, request: ContainerRecreateRequest) -> tuple[str, ...]:
        """Return the requests that the agent works on, or will, before this one."""
        others = [other for other in self._requests.by_index(POD_UID, pod_uid(request)) if other is not request]
        age = request.metadata.seniority
        first = [other for other in others if other.status.phase == RECREATING or other.metadata.seniority < age]
        return tuple(sorted(other.metadata.name for other in first if not other.completed))


def problem(request: ContainerRecreateRequest, sender: Sender, report: RecreateReport) -> str:
    """Return why a report is rejected, or "" (containerrecreaterequest.md §5).

    An agent has no rights of its own: it may only report on requests admitted for its node, and on their containers.
    """
    node = request.metadata.labels.get(RECREATE_NODE_NAME, "")
    return f"the request is for node {node}" if node != sender.node else merge.problem(report, request.spec)


async def read_pod(context: ControllerContext, key: Key) -> None:
    """Read the pod of the request. Raises ApiError, Unreachable."""
    request = context.table(REQUESTS).get(*key)
    if request is not None:
        await context.read(POD, key[0], request.spec.pod_name)


CONTROLLER = ControllerSpec(
    name="containerrecreaterequest-controller",
    primary=REQUESTS,
    watches=(PODS,),
    reports=StatusReports(kind=RECREATE_REQUESTS, body=RecreateReport, problem=problem, absorbed=merge.absorbed),
    build=lambda context, options: Gatherer(context),
    triggers=lambda gatherer: [Trigger(PODS, gatherer.of_pod)],
    plan=plan,
    also_read=read_pod,
)
