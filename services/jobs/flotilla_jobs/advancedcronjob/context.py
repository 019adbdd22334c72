"""The shared view of one pass: the AdvancedCronJob, its children by state, and notes (advancedcronjob.md §4.2)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Annotated

import msgspec

from flotilla_common.api.kinds.advancedcronjob.schedule import zone_named
from flotilla_common.api.kinds.advancedcronjob.types import SCHEDULED_AT, AdvancedCronJob
from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob
from flotilla_common.control.plan import Frozen
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_jobs.advancedcronjob.snapshot import AdvancedCronJobSnapshot, Child

COMPLETE, FAILED = "Complete", "Failed"
"""Conditions of a Job and of a BroadcastJob that has ended."""

_Moment = Annotated[datetime, msgspec.Meta(tz=True)]

_UID, _LAST, _FLOOR = "uid", "lastScheduleTime", "floor"
"""Keys of the notes of passes, beside the events that were sent."""


class Children(Frozen):
    """The children by state; those being deleted count until they are gone."""

    active: Sequence[Child]
    successful: Sequence[Child]
    failed: Sequence[Child]

    @classmethod
    def of(cls, children: Iterable[Child]) -> "Children":
        """Sort the children by state."""
        by_end: dict[str, list[Child]] = {"": [], COMPLETE: [], FAILED: []}
        for child in children:
            by_end[_end(child)].append(child)
        return cls(active=by_end[""], successful=by_end[COMPLETE], failed=by_end[FAILED])


def _end(child: Child) -> str:
    """Return how the child ended, or "" while it is active."""
    if not isinstance(child, ImageListPullJob):
        return child.status.verdict
    if child.status.completion_time is None:
        return ""
    return COMPLETE if child.status.succeeded == child.status.desired else FAILED


def latest_run(children: Iterable[Child]) -> datetime | None:
    """Return the latest due time in the children's annotations; unreadable ones are ignored."""
    return max(filter(None, map(_scheduled_at, children)), default=None)


def _scheduled_at(child: Child) -> datetime | None:
    text = child.metadata.annotations.get(SCHEDULED_AT, "")
    try:
        return msgspec.convert(text, _Moment).astimezone(UTC).replace(microsecond=0)
    except (msgspec.ValidationError, OverflowError):
        return None


class PlanContext(Frozen):
    """The view of one pass."""

    snapshot: AdvancedCronJobSnapshot
    now: datetime
    children: Children
    notes: Mapping[str, str]  # of passes over the object with this uid
    last_run: datetime | None  # due time of the latest run that was started
    floor: datetime | None  # runs up to here were skipped, and none was started since

    @property
    def job(self) -> AdvancedCronJob:
        """The AdvancedCronJob."""
        return self.snapshot.job

    @property
    def since(self) -> datetime:
        """The time after which runs count as missed (advancedcronjob.md §4.3)."""
        known = (self.job.metadata.creation_timestamp, self.last_run, self.floor)
        return max(filter(None, known), default=self.now)

    @property
    def local(self) -> tzinfo:
        """The time zone of this process."""
        return zone_named(self.snapshot.options.zone)

    def note(self, builder: PlanBuilder) -> None:
        """Note for the next pass what the objects do not hold."""
        builder.notes[_UID] = self.job.metadata.uid
        if self.last_run is not None:
            builder.notes[_LAST] = self.last_run.isoformat()
        if self.floor is not None:
            builder.notes[_FLOOR] = self.floor.isoformat()

    def give_up(self, builder: PlanBuilder) -> None:
        """Skip all runs up to now."""
        builder.notes[_FLOOR] = self.now.isoformat()


def context_of(snapshot: AdvancedCronJobSnapshot, now: datetime) -> PlanContext:
    """Build the view of a pass."""
    notes = _notes(snapshot)
    stored = snapshot.job.status.last_schedule_time
    # The latest run never goes back: neither when its child is deleted, nor while the status cannot be written.
    last = max(filter(None, (latest_run(snapshot.children), stored, _moment(notes, _LAST))), default=None)
    floor = _moment(notes, _FLOOR)
    return PlanContext(
        snapshot=snapshot,
        now=now,
        children=Children.of(snapshot.children),
        notes=notes,
        last_run=last,
        floor=None if floor is None or (last is not None and last > floor) else floor,
    )


def _notes(snapshot: AdvancedCronJobSnapshot) -> Mapping[str, str]:
    """Return the notes, unless they are of a former object of that name."""
    return snapshot.notes if snapshot.notes.get(_UID) == snapshot.job.metadata.uid else {}


def _moment(notes: Mapping[str, str], name: str) -> datetime | None:
    text = notes.get(name)
    return None if text is None else datetime.fromisoformat(text)
