"""How ImageListPullJobs are served: the list, its jobs, and what wakes the controller."""

from collections.abc import Container, Sequence

from flotilla_common.api.kinds.imagelistpulljob.kind import KIND
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB, ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.assembly import Assembly
from flotilla_common.control.controller import Controller, Key, Memory
from flotilla_common.mirror.table import Table
from flotilla_jobs.imagelistpull.plan import plan
from flotilla_jobs.imagelistpull.snapshot import ListJobSnapshot
from flotilla_jobs.imagepull.triggers import LIST, list_uids

CONTROLLER = "imagelistpulljob-controller"
"""Its name in events and metrics (install.md §10)."""


class Gatherer:
    """Builds the snapshot of one list."""

    def __init__(self, lists: Table[ImageListPullJob], jobs: Table[ImagePullJob]) -> None:
        self._lists = lists
        self._jobs = jobs

    def keys(self) -> list[Key]:
        """All lists."""
        return [(one.metadata.namespace, one.metadata.name) for one in self._lists]

    def gather(self, key: Key, memory: Memory) -> ListJobSnapshot | None:
        """The list and its jobs; None when it does not exist."""
        job = self._lists.get(*key)
        if job is None:
            return None
        return ListJobSnapshot(job=job, children=self._children(job), taken=_JobNames(self._jobs, key[0]))

    def _children(self, job: ImageListPullJob) -> Sequence[ImagePullJob]:
        found = [
            child
            for child in self._jobs.by_index(LIST, job.metadata.uid)
            if child.metadata.namespace == job.metadata.namespace and child.metadata.deletion_timestamp is None
        ]
        return sorted(found, key=_age)

    def keys_of(self, job: ImagePullJob | None) -> list[Key]:
        """The lists that own the job."""
        uids = list_uids(job) if job is not None else ()
        lists = [found for uid in uids if (found := self._lists.by_uid(uid)) is not None]
        return [(found.metadata.namespace, found.metadata.name) for found in lists]


class _JobNames(Container[str]):
    """Names of the ImagePullJobs of one namespace."""

    def __init__(self, jobs: Table[ImagePullJob], namespace: str) -> None:
        self._jobs = jobs
        self._namespace = namespace

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._jobs.get(self._namespace, name) is not None


def _age(job: ImagePullJob) -> tuple[str, str]:
    created = job.metadata.creation_timestamp
    return created.isoformat() if created is not None else "", job.metadata.name


def serve(assembly: Assembly, lists: Table[ImageListPullJob], jobs: Table[ImagePullJob]) -> None:
    """Add the controller to the service."""
    mirror = assembly.mirror
    gatherer = Gatherer(lists, jobs)

    async def reread(key: Key) -> None:
        await mirror.read(IMAGE_LIST_PULL_JOB, *key)
        await mirror.read_owned(IMAGE_PULL_JOB, key[0])

    controller: Controller[ListJobSnapshot] = assembly.controller(
        IMAGE_LIST_PULL_JOB,
        name=CONTROLLER,
        gather=gatherer.gather,
        plan=plan,
        reread=reread,
        keys=gatherer.keys,
        workers=assembly.context.settings.workers_of(KIND),
    )
    lists.listen(lambda old, new: controller.enqueue_object(new or old))
    jobs.listen(lambda old, new: controller.enqueue_all([*gatherer.keys_of(old), *gatherer.keys_of(new)]))
