"""The node's own NodeImage: its spec becomes pull tasks, their phases become its status (nodeagent.md §3).

There is one task per tag, from the spec's round to a final phase. What is complete in the NodeImage's status is
adopted, so a restarted agent does not pull it again. What this process completed counts as well, whether or not it has
been reported yet.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec
import structlog

from flotilla_common.api.kinds.nodeimage.types import (
    FAILED,
    PULLING,
    SUCCEEDED,
    WAITING,
    ImageSpec,
    ImageTag,
    JobReference,
    Name,
    NodeImage,
    NodeImageStatus,
    SandboxConfig,
    TagPullPolicy,
    TagStatus,
    counted,
)
from flotilla_common.clock import Clock
from flotilla_common.node.quota import Quota
from flotilla_common.node.reports import NODE_IMAGES, EventReport, NodeImageReport
from flotilla_nodeagent import metrics
from flotilla_nodeagent.agent_context import AgentContext
from flotilla_nodeagent.copies import Copies, Key
from flotilla_nodeagent.pulling import Puller, PullFailed, Task
from flotilla_nodeagent.reporting import ReportNotAccepted
from flotilla_nodeagent.workqueue import WorkQueue

ALWAYS = 1_000_000
"""Pulls at a time when the setting gives no limit; a NodeImage holds at most 256 images."""

Ended = Callable[[Task, TagStatus, float], None]
"""Called for every finished task, with the seconds that it took."""

COMPONENT = "kruise-daemon-imagepuller"

IDLE_SECONDS = (1200.0, 1800.0)
"""Interval of comparing the status with the last report although nothing has changed (nodeagent.md §3.1)."""

REFRESH_SECONDS = (12 * 3600.0, 13 * 3600.0)
"""Interval after which an unchanged status is reported again."""

WRITES_PER_SECOND, BURST = 0.5, 5
"""Limit of status writes: thousands of nodes may be pulling at once."""


class Tasks:
    """The pull tasks, at most one per tag."""

    def __init__(self, puller: Puller, clock: Clock, most: int, on_change: Callable[[], None], on_end: Ended) -> None:
        self._puller = puller
        self._clock = clock
        self._slots = asyncio.Semaphore(most if most > 0 else ALWAYS)
        self._on_change = on_change
        self._on_end = on_end
        self._running: dict[Name, tuple[int, asyncio.Task[None]]] = {}  # with the round
        self.known: dict[Name, TagStatus] = {}
        self._log = structlog.get_logger(part="images")

    def sync(self, image: NodeImage) -> None:
        """Start missing tasks and stop those that the spec no longer asks for."""
        wanted = {(name, tag.tag): (name, spec, tag) for name, spec in image.spec.images.items() for tag in spec.tags}
        for key in list(self._running):
            if key not in wanted or self._running[key][0] != wanted[key][2].version:
                self._stop(key)
        self.known = {key: status for key, status in self.known.items() if key in wanted}
        for key, (name, spec, tag) in wanted.items():
            reported = image.entry(*key)
            if reported is not None and reported.version == tag.version and reported.completion_time is not None:
                self._stop(key)
                self.known[key] = reported
            elif key not in self._running and not self._done(key, tag):
                self._start(key, _task(name, spec, tag))

    def stop(self) -> None:
        """Stop everything: the NodeImage is gone."""
        for key in list(self._running):
            self._stop(key)
        self.known.clear()

    def _done(self, key: Name, tag: ImageTag) -> bool:
        known = self.known.get(key)
        return known is not None and known.version == tag.version and known.completion_time is not None

    def _start(self, key: Name, task: Task) -> None:
        self._set(key, TagStatus(tag=task.tag, version=task.version, phase=WAITING))
        running = asyncio.get_running_loop().create_task(self._run(key, task))
        self._running[key] = (task.version, running)
        running.add_done_callback(lambda done: self._ended(key, done))

    def _stop(self, key: Name) -> None:
        """Cancel a task; it reports nothing any more."""
        running = self._running.pop(key, None)
        if running is not None:
            running[1].cancel()

    def _ended(self, key: Name, done: asyncio.Task[None]) -> None:
        running = self._running.get(key)
        if running is not None and running[1] is done:
            del self._running[key]
        if not done.cancelled() and (error := done.exception()) is not None:
            self._log.error("pull task failed unexpectedly", image=":".join(key), error=str(error))

    async def _run(self, key: Name, task: Task) -> None:
        async with self._slots:
            started, begun = self._clock.now().replace(microsecond=0), self._clock.monotonic()
            status = TagStatus(tag=task.tag, version=task.version, phase=PULLING, start_time=started)
            self._set(key, status)
            self._log.info("pulling", image=task.reference, version=task.version)
            try:
                await self._puller.pull(task)
            except PullFailed as error:
                final = {"phase": FAILED, "message": str(error)}
            else:
                final = {"phase": SUCCEEDED, "progress": 100, "image_id": await self._puller.image_id(task)}
        seconds = self._clock.monotonic() - begun
        status = msgspec.structs.replace(status, completion_time=self._end(started, seconds), **final)
        metrics.PULLS.labels(status.phase).inc()
        self._log.info(
            "pulled", image=task.reference, phase=status.phase, seconds=round(seconds, 1), why=status.message
        )
        self._set(key, status)
        self._on_end(task, status, seconds)

    def _end(self, started: datetime, seconds: float) -> datetime:
        """Return now by the wall clock, or the start plus `seconds` if the clock was set back meanwhile."""
        return max(self._clock.now(), started + timedelta(seconds=seconds)).replace(microsecond=0)

    def _set(self, key: Name, status: TagStatus) -> None:
        self.known[key] = status
        self._on_change()


def _task(name: str, spec: ImageSpec, tag: ImageTag) -> Task:
    return Task(
        image=name,
        tag=tag.tag,
        version=tag.version,
        if_not_present=tag.image_pull_policy == "IfNotPresent",
        policy=tag.pull_policy or TagPullPolicy(),
        sandbox=spec.sandbox_config or SandboxConfig(),
        secrets=tuple(spec.pull_secrets),
    )


class NodeImages:
    """Handles the NodeImage with the node's name."""

    def __init__(self, context: AgentContext, copies: Copies[NodeImage], puller: Puller, most: int) -> None:
        """Start with at most `most` pulls at a time; 0 or less is no limit."""
        self._context = context
        self._copies = copies
        self._key: Key = ("", context.node)
        self._writes = Quota(BURST, WRITES_PER_SECOND)
        self._reported: tuple[str, NodeImageStatus] | None = None  # uid and status of the last accepted report
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
        if self._must_report(image, status):
            now = self._context.clock.monotonic()
            if not self._writes.take(key[1], now):
                return self._writes.wait(key[1], now)  # not slept here: by then there may be something newer
            await self._report(image, status)
        return self._context.entropy.uniform(*IDLE_SECONDS)

    def _must_report(self, image: NodeImage, status: NodeImageStatus) -> bool:
        """Report whether the status differs from the last report, or that one is too old."""
        if self._reported is not None and self._reported[0] == image.metadata.uid:
            return self._reported[1] != status or self._context.clock.monotonic() >= self._refresh_at
        return image.status != status

    async def _report(self, image: NodeImage, status: NodeImageStatus) -> None:
        meta = image.metadata
        report = NodeImageReport(uid=meta.uid, resource_version=meta.resource_version, status=status)
        try:
            await self._context.reporter.status(NODE_IMAGES, meta.name, report)
        except ReportNotAccepted:
            self._reported = None
            raise
        self._reported = (meta.uid, status)
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
        for owner in (about, *(wanted.owner_references if wanted is not None else ())):
            text = f"Image {task.image}:{task.tag} {status.message}"
            self._event(owner, "Warning", "PullImageFailed", text)

    def _event(self, about: JobReference, kind: str, reason: str, message: str) -> None:
        event = EventReport(
            kind=about.kind, uid=about.uid, component=COMPONENT, type=kind, reason=reason, message=message
        )
        self._context.reporter.event(about.namespace, about.name, event)
