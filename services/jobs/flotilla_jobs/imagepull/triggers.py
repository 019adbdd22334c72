"""Finds the jobs that a change concerns (imagepull.md §5.1).

With many jobs and nodes, requeuing every job for every change would cost more than the pulls themselves.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from flotilla_common.api.core import Pod, Secret
from flotilla_common.api.images import ImageName
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB, ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.control.keystate import Key
from flotilla_common.control.watches import owned
from flotilla_common.mirror.table import Indexer, Table
from flotilla_jobs.imagepull.secret_copies import references_of
from flotilla_jobs.imagepull.selection import concerns_node, is_active

IMAGE, TAG, BY_NODE, BY_POD, SECRET_NAME = "image", "tag", "by-node", "by-pod", "secret"
"""Indexes of active jobs.

By image name; by name and tag; all that choose nodes (one key); by namespace those that choose pods; by namespace and
name of their pull secrets.
"""


def image_of(job: ImagePullJob) -> Iterable[str]:
    """Return the image's name."""
    return [name for name, _ in tag_of(job)]


def tag_of(job: ImagePullJob) -> Iterable[tuple[str, str]]:
    """Return the image's name and tag, nothing if the image cannot be parsed."""
    if not is_active(job):
        return ()
    try:
        image = ImageName.parse(job.spec.image)
    except ValueError:
        return ()
    return ((image.name, image.tag),)


def by_node(job: ImagePullJob) -> Iterable[str]:
    """Return the key that all jobs that choose nodes share."""
    return (BY_NODE,) if is_active(job) and job.spec.pod_selector is None else ()


def by_pod(job: ImagePullJob) -> Iterable[str]:
    """Return the namespace of the pods that the job selects."""
    return (job.metadata.namespace,) if is_active(job) and job.spec.pod_selector is not None else ()


def secret_names(job: ImagePullJob) -> Iterable[Key]:
    """Return the pull secrets of a job that still needs them."""
    return [(job.metadata.namespace, name) for name in job.spec.pull_secrets] if is_active(job) else ()


INDEXES: Mapping[str, Indexer[ImagePullJob]] = {
    IMAGE: image_of,
    TAG: tag_of,
    BY_NODE: by_node,
    BY_POD: by_pod,
    SECRET_NAME: secret_names,
}


class Triggers:
    """Finds jobs in their table."""

    def __init__(self, jobs: Table[ImagePullJob]) -> None:
        self._jobs = jobs

    def of_node_image(self, old: NodeImage | None, new: NodeImage | None) -> set[Key]:
        """Return the jobs that gain or lose the node, and those whose image changed on it."""
        if old is None or new is None or _leaving(old) != _leaving(new):
            image = new or old
            assert image is not None
            return _keys(job for job in self._jobs if is_active(job) and _concerns(job, image))
        jobs: list[ImagePullJob] = []
        if old.metadata.labels != new.metadata.labels:
            chosen = self._jobs.by_index(BY_NODE, BY_NODE)
            jobs += [job for job in chosen if _concerns(job, old) != _concerns(job, new)]
        for index, key in changes(old, new):
            jobs += [job for job in self._jobs.by_index(index, key) if _concerns(job, new)]
        return _keys(jobs)

    def of_pod(self, old: Pod | None, new: Pod | None) -> set[Key]:
        """Return the jobs that gain or lose a pod."""
        if _place(old) == _place(new):
            return set()
        pods = [pod for pod in (old, new) if pod is not None and pod.spec.node_name]
        if not pods:
            return set()
        jobs = self._jobs.by_index(BY_POD, pods[0].metadata.namespace)
        return _keys(job for job in jobs if any(_asks_for(job, pod) for pod in pods))

    def of_source(self, key: Key) -> set[Key]:
        """Return the jobs that name the secret."""
        return _keys(self._jobs.by_index(SECRET_NAME, key))

    def of_copy(self, old: Secret | None, new: Secret | None) -> set[Key]:
        """Return the jobs that use the copy, or used it before the change."""
        keys = {key for copy in (old, new) if copy is not None for key in references_of(copy)}
        pairs = (key.partition("/") for key in keys)
        return {(namespace, name) for namespace, _, name in pairs}

    def of_ended_list(self, old: ImageListPullJob | None, new: ImageListPullJob | None) -> set[Key]:
        """Return the jobs of a list that has completed, appeared or gone: they may be deleted now."""
        parent = new or old
        if parent is None or (old is not None and new is not None and _over(new) == _over(old)):
            return set()
        return _keys(owned(self._jobs, IMAGE_LIST_PULL_JOB, parent.metadata))

    def sources(self, served: Callable[[str, str], bool]) -> dict[Key, set[str]]:
        """Return the secrets of active jobs that this replica serves, each with the uids of these jobs."""
        jobs_of: dict[Key, set[str]] = {}
        for job in self._jobs:
            if job.spec.pull_secrets and served(*job.metadata.key):
                for key in secret_names(job):
                    jobs_of.setdefault(key, set()).add(job.metadata.uid)
        return jobs_of


def changes(old: NodeImage, new: NodeImage) -> Iterable[tuple[str, str | tuple[str, str]]]:
    """Yield (index, key) of the jobs that a change concerns: those of one tag, or all of an image."""
    for name in {*old.spec.images, *new.spec.images, *old.status.image_statuses, *new.status.image_statuses}:
        before, after = old.spec.images.get(name), new.spec.images.get(name)
        was, is_now = old.status.image_statuses.get(name), new.status.image_statuses.get(name)
        if before == after and was == is_now:
            continue
        vanished = (before is not None and after is None) or (was is not None and is_now is None)
        shared = (
            before is not None
            and after is not None
            and (before.pull_secrets, before.sandbox_config) != (after.pull_secrets, after.sandbox_config)
        )
        if vanished or shared:
            yield IMAGE, name
            continue
        yield from ((TAG, (name, tag)) for tag in _changed_tags(old, new, name))


def _changed_tags(old: NodeImage, new: NodeImage, name: str) -> Iterable[str]:
    tags = {
        entry.tag
        for image in (old, new)
        for listed in (image.spec.images.get(name), image.status.image_statuses.get(name))
        if listed is not None
        for entry in listed.tags
    }
    return [
        tag
        for tag in sorted(tags)
        if (old.task(name, tag), old.entry(name, tag)) != (new.task(name, tag), new.entry(name, tag))
    ]


def _over(job: ImageListPullJob) -> bool:
    return job.status.completion_time is not None


def _leaving(image: NodeImage) -> bool:
    return image.metadata.deletion_timestamp is not None


def _concerns(job: ImagePullJob, image: NodeImage) -> bool:
    with suppress(ValueError):
        return concerns_node(job, image)
    return False


def _asks_for(job: ImagePullJob, pod: Pod) -> bool:
    with suppress(ValueError):
        return job.pod_query.matches(pod.metadata.labels)
    return False


def _place(pod: Pod | None) -> tuple[str, bool, dict[str, str]]:
    return ("", False, {}) if pod is None else (pod.spec.node_name, pod.active, pod.metadata.labels)


def _keys(jobs: Iterable[ImagePullJob]) -> set[Key]:
    return {job.metadata.key for job in jobs}
