"""The ImageListPullJob controller: what it watches and writes, and how it builds snapshots."""

from collections.abc import Iterable, Sequence

from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB, ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Watch, owned
from flotilla_jobs.enabled import jobs_off
from flotilla_jobs.imagelistpull.plan import plan
from flotilla_jobs.imagelistpull.snapshot import ListJobSnapshot

LISTS = Watch(IMAGE_LIST_PULL_JOB, ImageListPullJob, writes=("delete", "patch"), subresources=("status",))
JOBS = Watch(IMAGE_PULL_JOB, ImagePullJob, owner=IMAGE_LIST_PULL_JOB, writes=("create", "delete"))


class Gatherer:
    """Builds the snapshot of one list."""

    def __init__(self, context: ControllerContext) -> None:
        self._lists = context.table(LISTS)
        self._jobs = context.table(JOBS)

    def gather(self, key: Key, memory: Memory) -> ListJobSnapshot | None:
        """Return the list and its jobs, or None if the list does not exist."""
        job = self._lists.get(*key)
        if job is None:
            return None
        return ListJobSnapshot(job=job, children=self._children(job), taken=self._jobs.names(key[0]))

    def _children(self, job: ImageListPullJob) -> Sequence[ImagePullJob]:
        children: Iterable[ImagePullJob] = owned(self._jobs, IMAGE_LIST_PULL_JOB, job.metadata)
        current = [
            child
            for child in children
            if child.metadata.namespace == job.metadata.namespace and child.metadata.deletion_timestamp is None
        ]
        return sorted(current, key=lambda child: child.metadata.seniority)


CONTROLLER = ControllerSpec(
    name="imagelistpulljob-controller",
    primary=LISTS,
    watches=(JOBS,),
    off=jobs_off,
    build=lambda context, options: Gatherer(context),
    plan=plan,
)
