"""The running pull tasks, and the state of each tag: from the spec's round to a final phase (nodeagent.md §3.2).

What is complete in the NodeImage's status is adopted, so a restarted agent does not pull it again. What this process
completed counts as well, whether or not it has been reported yet.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec
import structlog

from flotilla_common.api.kinds.nodeimage.counting import Name
from flotilla_common.api.kinds.nodeimage.types import (
    FAILED,
    PULLING,
    SUCCEEDED,
    WAITING,
    ImageSpec,
    ImageTag,
    NodeImage,
    SandboxConfig,
    TagPullPolicy,
    TagStatus,
)
from flotilla_common.clock import Clock
from flotilla_nodeagent import metrics
from flotilla_nodeagent.images.pull import Puller, PullFailed, Task

ALWAYS = 1_000_000
"""Pulls at a time when the setting gives no limit; a NodeImage holds at most 256 images."""

Ended = Callable[[Task, TagStatus, float], None]
"""Called for every finished task, with the seconds that it took."""


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
        for one in list(self._running):
            if one not in wanted or self._running[one][0] != wanted[one][2].version:
                self._stop(one)
        self.known = {one: status for one, status in self.known.items() if one in wanted}
        for one, (name, spec, tag) in wanted.items():
            reported = image.entry(*one)
            if reported is not None and reported.version == tag.version and reported.completion_time is not None:
                self._stop(one)
                self.known[one] = reported
            elif one not in self._running and not self._done(one, tag):
                self._start(one, _task(name, spec, tag))

    def stop(self) -> None:
        """Stop everything: the NodeImage is gone."""
        for one in list(self._running):
            self._stop(one)
        self.known.clear()

    def _done(self, one: Name, tag: ImageTag) -> bool:
        known = self.known.get(one)
        return known is not None and known.version == tag.version and known.completion_time is not None

    def _start(self, one: Name, task: Task) -> None:
        self._set(one, TagStatus(tag=task.tag, version=task.version, phase=WAITING))
        running = asyncio.get_running_loop().create_task(self._run(one, task))
        self._running[one] = (task.version, running)
        running.add_done_callback(lambda done: self._ended(one, done))

    def _stop(self, one: Name) -> None:
        """Cancel a task; it reports nothing any more."""
        found = self._running.pop(one, None)
        if found is not None:
            found[1].cancel()

    def _ended(self, one: Name, done: asyncio.Task[None]) -> None:
        found = self._running.get(one)
        if found is not None and found[1] is done:
            del self._running[one]
        if not done.cancelled() and (error := done.exception()) is not None:
            self._log.error("pull task failed unexpectedly", image=":".join(one), error=str(error))

    async def _run(self, one: Name, task: Task) -> None:
        async with self._slots:
            started, begun = self._clock.now().replace(microsecond=0), self._clock.monotonic()
            status = TagStatus(tag=task.tag, version=task.version, phase=PULLING, start_time=started)
            self._set(one, status)
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
        self._set(one, status)
        self._on_end(task, status, seconds)

    def _end(self, started: datetime, seconds: float) -> datetime:
        """Return now by the wall clock, or the start plus `seconds` if the clock was set back meanwhile."""
        return max(self._clock.now(), started + timedelta(seconds=seconds)).replace(microsecond=0)

    def _set(self, one: Name, status: TagStatus) -> None:
        self.known[one] = status
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
