"""The status of a NodeImage: the reports of its agent, and failures where it reports nothing (imagepull.md §4.4).

Entries only move forward. An entry of another version than the spec's is out of date; a final one stays, so that a late
report cannot revive a pull that has timed out.
"""

from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.images import reference_of
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.kinds.nodeimage.types import (
    FAILED,
    PULLING,
    SUCCEEDED,
    WAITING,
    ImageTag,
    Name,
    NodeImage,
    NodeImageStatus,
    TagStatus,
    counted,
    tasks,
)
from flotilla_common.api.meta import later
from flotilla_common.control.plan import Event, ObjectRef
from flotilla_common.control.planbuilder import Deadlines

SILENCE = timedelta(minutes=10)
"""A pull fails after this long without any report, or this long after its deadline."""

NO_ANSWER = "node has not responded for a long time"
TOO_LONG = "pulling exceeds the activeDeadlineSeconds"

MOST_MESSAGE = 1024
"""Length limit of a stored message: 256 images with many tags have to fit into one object."""


def report_problem(report: NodeImageStatus) -> str:
    """Return why the report cannot be a status, or "" if it can."""
    for name, image in report.image_statuses.items():
        for entry in image.tags:
            if entry.phase not in (WAITING, PULLING, SUCCEEDED, FAILED):
                return f"{reference_of(name, entry.tag)}: there is no phase {entry.phase!r}"
            if (entry.completion_time is not None) != (entry.phase in (SUCCEEDED, FAILED)):
                return f"{reference_of(name, entry.tag)}: the completion time belongs to the final phases"
    return ""


def reported(image: NodeImage, report: NodeImageStatus) -> NodeImageStatus:
    """Return the status after the report."""
    entries: dict[Name, TagStatus] = {}
    for name, tag in tasks(image.spec.images):
        image_report = report.image_statuses.get(name)
        entry = _newer(tag, image.entry(name, tag.tag), image_report.tag(tag.tag) if image_report is not None else None)
        if entry is not None:
            entries[name, tag.tag] = entry
    return counted(image.spec.images, entries)


def _newer(tag: ImageTag, stored: TagStatus | None, reported: TagStatus | None) -> TagStatus | None:
    if reported is None or reported.version != tag.version:
        return stored
    if stored is not None and stored.version == tag.version and stored.completion_time is not None:
        return stored
    progress = max(0, min(100, reported.progress))
    return msgspec.structs.replace(reported, progress=progress, message=reported.message[:MOST_MESSAGE])


class PullTimeouts:
    """Fails pulls that take too long. Collects events; `deadlines` gets the next deadline."""

    def __init__(self, image: NodeImage, now: datetime, deadlines: Deadlines) -> None:
        self._image = image
        self._now = now
        self._deadlines = deadlines
        self.events: list[Event] = []

    def applied(self, status: NodeImageStatus) -> NodeImageStatus:
        """Return the status with late pulls failed, or the same status if there are none."""
        entries = {(name, entry.tag): entry for name, stored in status.image_statuses.items() for entry in stored.tags}
        for name, tag in tasks(self._image.spec.images):
            stored = entries.get((name, tag.tag))
            if message := self._too_late(tag, stored):
                self._record(name, tag, message)
                entries[name, tag.tag] = self._failure(tag, stored, message)
        return counted(self._image.spec.images, entries) if self.events else status

    def _too_late(self, tag: ImageTag, entry: TagStatus | None) -> str:
        if tag.created_at is None:
            return ""
        if entry is None or entry.version != tag.version:
            return NO_ANSWER if self._deadlines.passed(later(tag.created_at, SILENCE), self._now) else ""
        deadline = tag.pull_policy.active_deadline_seconds if tag.pull_policy is not None else None
        if entry.completion_time is not None or deadline is None:
            return ""
        end = later(later(tag.created_at, deadline), SILENCE)
        return TOO_LONG if self._deadlines.passed(end, self._now) else ""

    def _failure(self, tag: ImageTag, stored: TagStatus | None, message: str) -> TagStatus:
        entry = stored if stored is not None and stored.version == tag.version else TagStatus(tag=tag.tag)
        now = self._now.replace(microsecond=0)
        return msgspec.structs.replace(entry, phase=FAILED, completion_time=now, version=tag.version, message=message)

    def _record(self, name: str, tag: ImageTag, message: str) -> None:
        node = self._image.metadata.name
        text = f"Failed to pull image {name}:{tag.tag} on node {node} for {message}"
        self.events.append(Event("PullImageFailed", text, warning=True))
        for owner in tag.owner_references:
            if owner.kind == IMAGE_PULL_JOB.kind:
                about = ObjectRef(IMAGE_PULL_JOB, owner.namespace, owner.name, owner.uid)
                self.events.append(Event("PullImageFailed", text, warning=True, about=about))
