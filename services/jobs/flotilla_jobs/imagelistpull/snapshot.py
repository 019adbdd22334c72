"""The input of an ImageListPullJob's plan."""

from collections.abc import Container, Sequence

import msgspec

from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB, ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.control.plan import ObjectRef


class ListJobSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A list and its jobs."""

    job: ImageListPullJob
    children: Sequence[ImagePullJob] = ()  # without those being deleted; oldest first
    taken: Container[str] = ()  # names of all ImagePullJobs of the namespace

    @property
    def subject(self) -> ObjectRef:
        """The list as the subject of events and bus records."""
        return ObjectRef.of(IMAGE_LIST_PULL_JOB, self.job.metadata)
