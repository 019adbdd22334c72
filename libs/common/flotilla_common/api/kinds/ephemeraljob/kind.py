"""EphemeralJob: ephemeral containers in running pods."""

from flotilla_common.api.kinds.ephemeraljob.types import EPHEMERAL_JOB
from flotilla_common.api.kinds.kind import Kind, Workers, rules_in

KIND = Kind(
    resource=EPHEMERAL_JOB,
    doc="An EphemeralJob puts ephemeral containers into running pods, a few at a time, and follows them to their end.",
    service="jobs",
    rules=rules_in("flotilla_common.api.kinds.ephemeraljob.api"),
    versions=("v1alpha1",),
    short_names=("ejob",),
    workers=Workers(10),
)
