"""Image pulls: nodes at once, completion of jobs, and final results (imagepull.md §5, §8)."""

from collections.abc import Iterator

import msgspec

from flotilla_common.api.images import ImageName
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage
from flotilla_common.api.selectors import Selector
from tests.simulation.oracles.view import Commit, View

FINAL = ("Succeeded", "Failed")
GIVEN_UP = "job exceeds activeDeadlineSeconds"


class Pulls:
    """The rule for image pulls: the states of jobs and NodeImages over time."""

    def __init__(self) -> None:
        self._jobs: dict[str, list[tuple[float, ImagePullJob]]] = {}  # by uid: since when it looks like this
        self._nodes: dict[str, NodeImage] = {}
        self._made: dict[str, float] = {}  # when nodes came, were labelled otherwise, or were asked for something

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        version = commit.version
        if version.resource == IMAGE_PULL_JOB:
            yield from self._job(view, commit)
        elif version.resource == NODE_IMAGE:
            yield from self._node(view, commit)

    def _job(self, view: View, commit: Commit) -> Iterator[str]:
        version = commit.version
        if version.after is None:
            self._jobs.pop(version.uid, None)
            return
        before, job = self._last(version.uid), msgspec.convert(version.after, type=ImagePullJob)
        self._jobs.setdefault(version.uid, []).append((view.at, job))
        status = job.status
        done = status.succeeded + status.failed
        if done + status.active > status.desired:
            yield f"counts {status.succeeded} + {status.failed} + {status.active} nodes of {status.desired}"
        if before is not None and before.status.completion_time is not None:
            if before.status != status:
                yield "changes the status of a job that is over"
        elif status.completion_time is not None and status.message != GIVEN_UP:
            if done != status.desired or status.active:
                yield f"is over with {done} of {status.desired} nodes"
            yield from self._undone(view, job)

    def _undone(self, view: View, job: ImagePullJob) -> Iterator[str]:
        """Yield nodes that the job should have waited for, and could have seen."""
        for node in self._nodes.values():
            name = node.metadata.name
            if self._made[name] < view.since and _wants(job, node) and not _is_done(job, node):
                yield f"is over, though {name} has not pulled"

    def _node(self, view: View, commit: Commit) -> Iterator[str]:
        version = commit.version
        before = self._nodes.pop(version.name, None)
        if version.after is None:
            return
        node = self._nodes[version.name] = msgspec.convert(version.after, type=NodeImage)
        if before is None or before.metadata.labels != node.metadata.labels or before.spec != node.spec:
            self._made[version.name] = view.at
        if before is None or before.metadata.uid != node.metadata.uid:
            return
        yield from _revived(before, node)
        if commit.ours:
            for uid in self._jobs:
                if not _asks(before, uid) and _asks(node, uid):
                    yield from self._pushed(view, uid)

    def _pushed(self, view: View, uid: str) -> Iterator[str]:
        """Check that another node is asked only while fewer than `parallelism` are pulling."""
        lately = [job for _, job in self._lately(uid, view.since)]
        most = max(_parallelism(job) for job in lately)
        job = lately[-1]
        asked = [node for node in self._nodes.values() if _asks(node, uid) and _wants(job, node)]
        busy = [node for node in asked if not _is_done(job, node)]
        if len(busy) > most and not _another_image(lately):
            names = ", ".join(sorted(node.metadata.name for node in busy))
            yield f"has {len(busy)} nodes pull at once ({names}), {most} may"

    def _last(self, uid: str) -> ImagePullJob | None:
        return self._jobs[uid][-1][1] if uid in self._jobs else None

    def _lately(self, uid: str, since: float) -> Iterator[tuple[float, ImagePullJob]]:
        """Yield the states of the job since a time."""
        looks = self._jobs[uid]
        for index, look in enumerate(looks):
            if index + 1 == len(looks) or looks[index + 1][0] >= since:
                yield look


def _revived(before: NodeImage, after: NodeImage) -> Iterator[str]:
    """Check that the result of a round stays."""
    for name, image in after.status.image_statuses.items():
        for entry in image.tags:
            old = before.entry(name, entry.tag)
            if old is not None and old.version == entry.version and old.phase in FINAL and old.phase != entry.phase:
                yield f"says {entry.phase} of {name}:{entry.tag}, which was {old.phase} already"


def _asks(node: NodeImage, uid: str) -> bool:
    return any(tag.owned_by(uid) for spec in node.spec.images.values() for tag in spec.tags)


def _is_done(job: ImagePullJob, node: NodeImage) -> bool:
    image = ImageName.parse(job.spec.image)
    task, entry = node.task(image.name, image.tag), node.entry(image.name, image.tag)
    asked = task is not None and task.owned_by(job.metadata.uid)
    return asked and entry is not None and task is not None and entry.version == task.version and entry.phase in FINAL


def _wants(job: ImagePullJob, node: NodeImage) -> bool:
    """Report whether the job wants the node. Jobs that select pods are not checked here."""
    if job.spec.pod_selector is not None or node.metadata.deletion_timestamp is not None:
        return False
    selector = job.spec.selector
    if selector is None:
        return True
    if selector.names:
        return node.metadata.name in selector.names
    return Selector.compile(selector).matches(node.metadata.labels)


def _parallelism(job: ImagePullJob) -> int:
    return 1 if job.spec.parallelism is None else int(job.spec.parallelism)


def _another_image(looks: list[ImagePullJob]) -> bool:
    return len({job.spec.image for job in looks}) > 1
