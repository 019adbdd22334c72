"""ContainerRecreateRequest: restarts of containers in a running pod."""

from flotilla_common.api.keys import RECREATE_ACTIVE, RECREATE_NODE_NAME
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.kinds.kind import Kind, NodeRoute, Workers, rules_in
from flotilla_common.api.meta import metadata_of


def node_of(body: bytes) -> str:
    """Return the request's node while the request has the label `active`, with any value."""
    labels = metadata_of(body).labels
    return labels.get(RECREATE_NODE_NAME, "") if RECREATE_ACTIVE in labels else ""


KIND = Kind(
    resource=RECREATE_REQUEST,
    doc="A ContainerRecreateRequest restarts containers of a running pod, which stays as it is.",
    service="jobs",
    rules=rules_in("flotilla_common.api.kinds.containerrecreaterequest.admission"),
    short_names=("crr",),
    gates=("KruiseDaemon",),
    workers=Workers(flag="crr"),
    node_route=NodeRoute(node_of),
)
