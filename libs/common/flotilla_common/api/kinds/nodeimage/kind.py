"""NodeImage: the images that one node should pull, and their progress. It has the node's name."""

from flotilla_common.api.kinds.kind import Kind, NodeRoute, Workers, rules_in
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE
from flotilla_common.api.meta import metadata_of

KIND = Kind(
    resource=NODE_IMAGE,
    doc="A NodeImage lists the images that one node should pull, and their progress. It has the node's name.",
    service="jobs",
    rules=rules_in("flotilla_common.api.kinds.nodeimage.api"),
    gates=("KruiseDaemon",),
    workers=Workers(flag="nodeimage"),
    made_by_us=True,
    node_route=NodeRoute(lambda body: metadata_of(body).name),
)
