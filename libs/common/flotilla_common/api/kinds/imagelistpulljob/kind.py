"""ImageListPullJob: pulls of several images ahead of their use."""

from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.kinds.kind import Kind, rules_in

KIND = Kind(
    resource=IMAGE_LIST_PULL_JOB,
    doc="An ImageListPullJob pulls several images on chosen nodes: one ImagePullJob for each.",
    service="jobs",
    rules=rules_in("flotilla_common.api.kinds.imagelistpulljob.api"),
    gates=("KruiseDaemon", "ImagePullJobGate"),
    parts=(IMAGE_PULL_JOB,),
)
