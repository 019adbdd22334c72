"""SidecarSet: containers that are added to the pods of others, and updated in place there."""

from typing import TYPE_CHECKING

from flotilla_common.api.kinds.kind import Kind, Workers
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET

if TYPE_CHECKING:
    from flotilla_common.api.kinds.rules import Rules


def _rules() -> "Rules":
    from flotilla_common.api.kinds.rules import Admission, Rules
    from flotilla_common.api.kinds.sidecarset import admission, conversion, crd

    webhooks = Admission(mutate=admission.mutate, validate=admission.validate, arms_pods=True)
    return Rules(schema=crd.version, convert=conversion.convert, admission=webhooks)


KIND = Kind(
    resource=SIDECAR_SET,
    doc="A SidecarSet adds containers to pods as they are created, and updates their images in place.",
    service="sidecar",
    rules=_rules,
    workers=Workers(3, "sidecarset"),
)
