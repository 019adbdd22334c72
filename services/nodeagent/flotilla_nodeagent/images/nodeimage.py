"""The node's own NodeImage: its spec becomes tasks, their phases become its status."""

import structlog

from flotilla_common.api.kinds.nodeimage.counting import counted
from flotilla_common.api.kinds.nodeimage.types import FAILED, JobReference, NodeImage, NodeImageStatus, TagStatus
from flotilla_common.node.quota import Quota
from flotilla_common.node.reports import NODE_IMAGES, EventReport, NodeImageReport
from flotilla_nodeagent.agent_context import AgentContext
from flotilla_nodeagent.channel.copies import Copies, Key
from flotilla_nodeagent.channel.reporting import ReportNotAccepted, ReportRejected
from flotilla_nodeagent.images.pull import Puller, Task
from flotilla_nodeagent.images.tasks import Tasks
from flotilla_nodeagent.workqueue import WorkQueue

COMPONENT = "kruise-daemon-imagepuller"
IDLE_SECONDS = (1200.0, 1800.0)
"""Interval of comparing the status with the last report although nothing has changed (nodeagent.md §3.1)."""

REFRESH_SECONDS = (12 * 3600.0, 13 * 3600.0)
"""Interval after which an unchanged status is reported again."""

WRITES_PER_SECOND, BURST = 0.5, 5
"""Limit of status writes: thousands of nodes may be pulling at once."""


class NodeImages:
    """Handles the NodeImage with the node's name."""

    def __init__(self, context: AgentContext, copies: Copies[NodeImage], puller: Puller, most: int) -> None:
        """Start with at most `most` pulls at a time; 0 or less is no limit."""
        self._context = context
        self._copies = copies
        self._key: Key = ("", context.node)
        self._writes = Quota(BURST, WRITES_PER_SECOND)
        self._said: tuple[str, NodeImageStatus] | None = None  # uid and status of the last accepted report
        self._refresh_at = 0.0
        self._queue = WorkQueue[Key]("images", context, self._sync, workers=1)
        self._tasks = Tasks(puller, context.clock, most, self._wake, self._ended)
        self._log = structlog.get_logger(part="images")
        copies.listen(self._changed)

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            await self._queue.run()
        finally:
            self._tasks.stop()

    def _wake(self) -> None:
        self._queue.add(self._key)

    def _changed(self, key: Key) -> None:
        if key == self._key and self._copies.synced:
            self._wake()

    async def _sync(self, key: Key) -> float | None:
        image = self._copies.get(key)
        if image is None or image.metadata.deletion_timestamp is not None:
            self._tasks.stop()
            return None
        self._tasks.sync(image)
        status = counted(image.spec.images, self._tasks.known)
        if self._must_say(image, status):
            now = self._context.clock.monotonic()
            if not self._writes.take(key[1], now):
                return self._writes.wait(key[1], now)  # not slept here: by then there may be something newer
            await self._report(image, status)
        return self._context.entropy.uniform(*IDLE_SECONDS)

    def _must_say(self, image: NodeImage, status: NodeImageStatus) -> bool:
        """Report whether the status differs from the last report, or that one is too old."""
        if self._said is not None and self._said[0] == image.metadata.uid:
            return self._said[1] != status or self._context.clock.monotonic() >= self._refresh_at
        return image.status != status

    async def _report(self, image: NodeImage, status: NodeImageStatus) -> None:
        meta = image.metadata
        report = NodeImageReport(uid=meta.uid, resource_version=meta.resource_version, status=status)
        try:
            await self._context.reporter.send(NODE_IMAGES, "", meta.name, report)
        except ReportNotAccepted:
            self._said = None  # it may have been written all the same: the copy will show
            raise
        except ReportRejected as error:
            self._log.warning("report refused", why=str(error))
        self._said = (meta.uid, status)
        self._refresh_at = self._context.clock.monotonic() + self._context.entropy.uniform(*REFRESH_SECONDS)

    def _ended(self, task: Task, status: TagStatus, seconds: float) -> None:
        """Send events on the NodeImage, and for a failure on the jobs that asked for the image."""
        image = self._copies.get(self._key)
        if image is None:
            return
        about = JobReference(kind="NodeImage", name=image.metadata.name, uid=image.metadata.uid)
        if status.phase != FAILED:
            text = f"Image {task.image}:{task.tag}, ecalpsedTime {seconds:.3f}s"  # sic: scripts match this spelling
            self._event(about, "Normal", "PullImageSucceed", text)
            return
        wanted = image.task(task.image, task.tag)
        for one in (about, *(wanted.owner_references if wanted is not None else ())):
            text = f"Image {task.image}:{task.tag} {status.message}"
            self._event(one, "Warning", "PullImageFailed", text)

    def _event(self, about: JobReference, kind: str, reason: str, message: str) -> None:
        event = EventReport(
            kind=about.kind, uid=about.uid, component=COMPONENT, type=kind, reason=reason, message=message
        )
        self._context.reporter.event(about.namespace, about.name, event)
