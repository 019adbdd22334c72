"""PersistentPodState: where the pods of a StatefulSet were, so that they come back there."""

from typing import TYPE_CHECKING

from flotilla_common.api.kinds.kind import Kind, Workers
from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE

if TYPE_CHECKING:
    from flotilla_common.api.kinds.rules import Rules


def _rules() -> "Rules":
    from flotilla_common.api.kinds.persistentpodstate import admission, conversion, crd
    from flotilla_common.api.kinds.rules import Admission, Rules

    return Rules(
        schema=crd.version, convert=conversion.convert, admission=Admission(validate=admission.validate, arms_pods=True)
    )


KIND = Kind(
    resource=PERSISTENT_POD_STATE,
    doc="A PersistentPodState remembers on which nodes the pods of a StatefulSet ran, and lets them come back there.",
    service="statefulset",
    rules=_rules,
    workers=Workers(8, "persistentpodstate"),
)
