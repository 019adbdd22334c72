"""What planning one ContainerRecreateRequest looks at."""

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import RECREATE_NODE_NAME, RECREATE_POD_UID
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST, ContainerRecreateRequest
from flotilla_common.control.subject import Subject
from flotilla_common.node.reports import RecreateReport


class RecreateSnapshot(msgspec.Struct, frozen=True):
    """One request, its pod, and what the node's agent reported last."""

    request: ContainerRecreateRequest
    pod: Pod | None
    """The very pod that the request means, unless it is gone or on its way out."""
    pod_known: bool
    """False while the pod is missing here and the apiserver has not been asked yet."""
    report: RecreateReport | None = None
    """What is not in the status yet, or is about to be found there."""
    ahead: tuple[str, ...] = ()
    """Other unfinished requests for the same pod: the agent works on one at a time."""

    @property
    def subject(self) -> Subject:
        """The request, as the bus names it."""
        return Subject.of(RECREATE_REQUEST, self.request.metadata)

    @property
    def node(self) -> str:
        """The node that the request concerns."""
        return self.request.metadata.labels.get(RECREATE_NODE_NAME, "")


def pod_uid(request: ContainerRecreateRequest) -> str:
    """The uid of the pod that was meant when the request was admitted."""
    return request.metadata.labels.get(RECREATE_POD_UID, "")
