"""EphemeralJob: ephemeral containers in running pods."""

from typing import TYPE_CHECKING

from flotilla_common.api.kinds.ephemeraljob.types import EPHEMERAL_JOB
from flotilla_common.api.kinds.kind import Kind, Workers

if TYPE_CHECKING:
    from flotilla_common.api.kinds.rules import Rules


def _rules() -> "Rules":
    from flotilla_common.api.kinds.ephemeraljob import admission, crd
    from flotilla_common.api.kinds.rules import Admission, Rules

    webhooks = Admission(validate=admission.validate, name="ephemeraljobs", calls_old_path=True)
    return Rules(schema=crd.version, admission=webhooks)


KIND = Kind(
    resource=EPHEMERAL_JOB,
    doc="An EphemeralJob puts ephemeral containers into running pods, a few at a time, and follows them to their end.",
    service="jobs",
    rules=_rules,
    versions=("v1alpha1",),
    short_names=("ejob",),
    workers=Workers(10),
)
