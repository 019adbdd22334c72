"""NodeImage: the images that one node shall pull, and how far it is. Every node has one, of its own name."""

from typing import TYPE_CHECKING

from flotilla_common.api.kinds.kind import Kind, Workers
from flotilla_common.api.kinds.node_route import NodeRoute
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE
from flotilla_common.api.meta import metadata_of

if TYPE_CHECKING:
    from flotilla_common.api.kinds.rules import Rules


def _rules() -> "Rules":
    from flotilla_common.api.kinds.nodeimage import admission, crd
    from flotilla_common.api.kinds.rules import Admission, Rules

    return Rules(schema=crd.version, admission=Admission(mutate=admission.mutate, validate=admission.validate))


KIND = Kind(
    resource=NODE_IMAGE,
    doc="A NodeImage says which images one node shall pull, and how far it is. It bears the node's name.",
    service="jobs",
    rules=_rules,
    gates=("KruiseDaemon",),
    workers=Workers(flag="nodeimage"),
    made_by_us=True,
    node_route=NodeRoute(lambda body: metadata_of(body).name),
)
