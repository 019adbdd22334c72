"""The input of a ContainerRecreateRequest's plan."""

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import RECREATE_NODE_NAME, RECREATE_POD_UID
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST, ContainerRecreateRequest
from flotilla_common.control.plan import ObjectRef
from flotilla_common.node.reports import RecreateReport


class RecreateSnapshot(msgspec.Struct, frozen=True):
    """One request, its pod, and the last report of the node's agent."""

    request: ContainerRecreateRequest
    pod: Pod | None
    """The pod that the request means, by uid, unless it is gone or being deleted."""
    pod_known: bool
    """False while the pod is missing here and has not been read from the apiserver yet."""
    report: RecreateReport | None = None
    """The report, which may already be in the status."""
    ahead: tuple[str, ...] = ()
    """Other unfinished requests for the same pod: the agent works on one at a time."""

    @property
    def subject(self) -> ObjectRef:
        """The request as the subject of bus records."""
        return ObjectRef.of(RECREATE_REQUEST, self.request.metadata)

    @property
    def node(self) -> str:
        """The node that the request concerns."""
        return self.request.metadata.labels.get(RECREATE_NODE_NAME, "")


def pod_uid(request: ContainerRecreateRequest) -> str:
    """Return the uid of the pod that was meant when the request was admitted."""
    return request.metadata.labels.get(RECREATE_POD_UID, "")
