"""SidecarSet: containers that are added to pods, and updated in place there."""

from flotilla_common.api.kinds.kind import Kind, Workers, rules_in
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET

KIND = Kind(
    resource=SIDECAR_SET,
    doc="A SidecarSet adds containers to pods as they are created, and updates their images in place.",
    service="sidecar",
    rules=rules_in("flotilla_common.api.kinds.sidecarset.admission"),
    workers=Workers(3, "sidecarset"),
)
