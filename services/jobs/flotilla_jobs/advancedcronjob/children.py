"""The children of an AdvancedCronJob, by what has become of them (advancedcronjob.md §4.2)."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from flotilla_common.api.kinds.advancedcronjob.types import SCHEDULED_AT
from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob
from flotilla_common.control.plan import Frozen
from flotilla_jobs.advancedcronjob.snapshot import Child

COMPLETE, FAILED = "Complete", "Failed"
"""Conditions of a Job and of a BroadcastJob that has ended."""

_Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class Children(Frozen):
    """Those on their way out count until they are gone."""

    active: Sequence[Child]
    successful: Sequence[Child]
    failed: Sequence[Child]

    @classmethod
    def of(cls, children: Iterable[Child]) -> "Children":
        """Sort them."""
        found: dict[str, list[Child]] = {"": [], COMPLETE: [], FAILED: []}
        for child in children:
            found[_end(child)].append(child)
        return cls(active=found[""], successful=found[COMPLETE], failed=found[FAILED])


def _end(child: Child) -> str:
    """How it ended; empty while it is active."""
    if not isinstance(child, ImageListPullJob):
        return child.status.verdict
    if child.status.completion_time is None:
        return ""
    return COMPLETE if child.status.succeeded == child.status.desired else FAILED


def latest_run(children: Iterable[Child]) -> datetime | None:
    """The latest time that any of them was due at, as their annotations say; what cannot be read does not count."""
    return max(filter(None, map(_scheduled_at, children)), default=None)


def _scheduled_at(child: Child) -> datetime | None:
    text = child.metadata.annotations.get(SCHEDULED_AT, "")
    try:
        return msgspec.convert(text, _Moment).astimezone(UTC).replace(microsecond=0)
    except (msgspec.ValidationError, OverflowError):
        return None
