"""From mirror tables to snapshots: a request, its pod, and the other requests for that pod."""

from collections.abc import Callable, Iterable

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import RECREATE_UNREADY
from flotilla_common.api.kinds.containerrecreaterequest.types import COMPLETED, RECREATING, ContainerRecreateRequest
from flotilla_common.control.controller import Key, Memory
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import RecreateReport
from flotilla_jobs.asking import Asking
from flotilla_jobs.containerrecreate.snapshot import RecreateSnapshot, pod_uid

POD_UID = "pod"
"""Index: requests that a change of their pod can concern, by the pod's uid."""


def open_pod_uid(request: ContainerRecreateRequest) -> Iterable[str]:
    """The pod of a request that is not over, or that still keeps the pod not ready."""
    is_open = request.status.phase != COMPLETED or RECREATE_UNREADY in request.metadata.finalizers
    return [pod_uid(request)] if is_open else []


class Gatherer:
    """Builds the snapshot of one request.

    A request ends for good when its pod is gone, so a pod that the mirror lacks is asked for first. `report` tells what
    the agent said last, `unreadable` whether there is a pod of this uid that could not be decoded; `again` plans a
    request once the apiserver has answered.
    """

    def __init__(
        self,
        *,
        requests: Table[ContainerRecreateRequest],
        pods: Table[Pod],
        report: Callable[[ContainerRecreateRequest], RecreateReport | None],
        asking: Asking,
        unreadable: Callable[[str], bool],
        again: Callable[[str, str], None],
    ) -> None:
        self._requests = requests
        self._pods = pods
        self._report = report
        self._asking = asking
        self._unreadable = unreadable
        self._again = again

    def keys(self) -> list[Key]:
        """All requests."""
        return [(one.metadata.namespace, one.metadata.name) for one in self._requests]

    def keys_of(self, old: Pod | None, new: Pod | None) -> set[Key]:
        """The requests that a change of a pod concerns."""
        uids = {pod.metadata.uid for pod in (old, new) if pod is not None}
        found = [request for uid in uids for request in self._requests.by_index(POD_UID, uid)]
        return {(request.metadata.namespace, request.metadata.name) for request in found}

    def gather(self, key: Key, memory: Memory) -> RecreateSnapshot | None:
        """The request and its surroundings; None when it does not exist."""
        request = self._requests.get(*key)
        if request is None:
            return None
        pod = self._pods.get(key[0], request.spec.pod_name)
        found = pod is not None and pod.metadata.uid == pod_uid(request)
        leaving = pod is None or pod.metadata.deletion_timestamp is not None
        return RecreateSnapshot(
            request=request,
            pod=pod if found and not leaving else None,
            pod_known=found or self._surely_gone(request),
            report=self._report(request),
            ahead=self._ahead(request),
        )

    def _surely_gone(self, request: ContainerRecreateRequest) -> bool:
        namespace, uid = request.metadata.namespace, pod_uid(request)
        if self._unreadable(uid):
            return False
        pod = (namespace, request.spec.pod_name)
        return self._asking.surely_gone(pod, uid, (namespace, request.metadata.name), self._again)

    def _ahead(self, request: ContainerRecreateRequest) -> tuple[str, ...]:
        """Requests that the agent works on, or will, before this one."""
        others = [one for one in self._requests.by_index(POD_UID, pod_uid(request)) if one is not request]
        return tuple(
            sorted(
                other.metadata.name
                for other in others
                if not other.completed and (other.status.phase == RECREATING or _age(other) < _age(request))
            )
        )


def _age(request: ContainerRecreateRequest) -> tuple[float, str]:
    created = request.metadata.creation_timestamp
    return (created.timestamp() if created else 0.0, request.metadata.name)
