"""ImageListPullJob: pulls of several images ahead of their use."""

from typing import TYPE_CHECKING

from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.kinds.kind import Kind

if TYPE_CHECKING:
    from flotilla_common.api.kinds.rules import Rules


def _rules() -> "Rules":
    from flotilla_common.api.kinds.imagelistpulljob import admission, crd
    from flotilla_common.api.kinds.rules import Admission, Rules

    webhooks = Admission(mutate=admission.mutate, validate=admission.validate, name="imagelistpulljob-v1beta1")
    return Rules(schema=crd.version, admission=webhooks)


KIND = Kind(
    resource=IMAGE_LIST_PULL_JOB,
    doc="An ImageListPullJob pulls several images on chosen nodes: one ImagePullJob for each.",
    service="jobs",
    rules=_rules,
    gates=("KruiseDaemon", "ImagePullJobGate"),
    parts=(IMAGE_PULL_JOB,),
)
