"""ImageListPullJob in its storage version, apps.kruise.io/v1beta1 (imagepull.md §2.3)."""

from flotilla_common.api.kinds.imagepulljob.types import PullTemplate
from flotilla_common.api.meta import Model, Moment, ObjectMeta
from flotilla_common.api.resources import Resource

IMAGE_LIST_PULL_JOB = Resource("apps.kruise.io", "v1beta1", "imagelistpulljobs", "ImageListPullJob")


class ImageListPullJobSpec(PullTemplate):
    images: list[str] = []


class FailedImageStatus(Model):
    """A child job with failed nodes; `name` is the image."""

    image_pull_job: str = ""
    name: str = ""
    message: str = ""


class ImageListPullJobStatus(Model):
    """The status of an ImageListPullJob; all counts are images."""

    start_time: Moment | None = None
    completion_time: Moment | None = None
    desired: int = 0
    active: int = 0
    completed: int = 0
    succeeded: int = 0
    failed_image_statuses: list[FailedImageStatus] = []


class ImageListPullJob(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: ImageListPullJobSpec = ImageListPullJobSpec()
    status: ImageListPullJobStatus = ImageListPullJobStatus()
