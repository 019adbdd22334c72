"""ImagePullJob: pulls of an image ahead of its use."""

from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.kinds.kind import Kind, Workers, rules_in

KIND = Kind(
    resource=IMAGE_PULL_JOB,
    doc="An ImagePullJob pulls one image on chosen nodes ahead of its use.",
    service="jobs",
    rules=rules_in("flotilla_common.api.kinds.imagepulljob.api"),
    gates=("KruiseDaemon", "ImagePullJobGate"),
    workers=Workers(flag="imagepulljob"),
)
