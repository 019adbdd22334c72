"""ImagePullJob: pulls of an image ahead of its use."""

from typing import TYPE_CHECKING

from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.kinds.kind import Kind, Workers

if TYPE_CHECKING:
    from flotilla_common.api.kinds.rules import Rules


def _rules() -> "Rules":
    from flotilla_common.api.kinds.imagepulljob import admission, crd
    from flotilla_common.api.kinds.rules import Admission, Rules

    webhooks = Admission(mutate=admission.mutate, validate=admission.validate, name="imagepulljob-v1beta1")
    return Rules(schema=crd.version, admission=webhooks)


KIND = Kind(
    resource=IMAGE_PULL_JOB,
    doc="An ImagePullJob pulls one image on chosen nodes before anybody needs it there.",
    service="jobs",
    rules=_rules,
    gates=("KruiseDaemon", "ImagePullJobGate"),
    workers=Workers(flag="imagepulljob"),
)
