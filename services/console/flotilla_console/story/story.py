"""The story of a workload: one change of its spec with all that followed, and the pods while it lasted."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_console.story.lives import Life, Now, lives
from flotilla_console.story.records import Recorded
from flotilla_insight.history.gather import records_of
from flotilla_insight.history.generations import ObjectRecords, Pod
from flotilla_insight.history.timeline import GenerationView, Timeline, timeline
from flotilla_insight.published import Act, Record, Why

OLDEST = timedelta(days=8)
"""Records with an older time are wrong: the streams keep a day."""

AHEAD = timedelta(minutes=5)
"""Records may be this far in the future, by the clock of another machine."""


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """The chapters of a workload, the selected one, and the lives of the pods in it."""

    chapters: Sequence[GenerationView] = ()
    index: int = -1
    """The index of the selected chapter."""
    start: datetime
    end: datetime
    decisions: Sequence[Why] = ()
    writes: Sequence[Act] = ()
    """Writes of the selected chapter, without those of status."""
    lives: Sequence[Life] = ()
    notes: Sequence[str] = ()
    impossible: int = 0
    """Records with a time that cannot be right."""

    @property
    def chapter(self) -> GenerationView:
        """Return the selected chapter."""
        return self.chapters[self.index]


def compose(
    recorded: Recorded,
    resource: Resource,
    namespace: str,
    name: str,
    *,
    pods: Sequence[Now],
    generation: int | None,
    now: datetime,
) -> Story:
    """Return the story of a generation (None: the last one); without chapters if nothing is recorded."""
    acts, whys = _plausible(recorded.acts, now), _plausible(recorded.decisions, now)
    impossible = len(recorded.acts) + len(recorded.decisions) - len(acts) - len(whys)
    record = records_of(resource, namespace, name, _distinct(acts), _distinct(whys))
    record = msgspec.structs.replace(record, begins=recorded.begins, pods={pod.name: _times(pod) for pod in pods})
    whole = timeline(record, now)
    if not whole.chapters:
        return Story(start=now, end=now, notes=whole.notes, impossible=impossible)
    return _select(record, whole, pods, generation, now, impossible)


def _select(
    record: ObjectRecords,
    whole: Timeline,
    pods: Sequence[Now],
    generation: int | None,
    now: datetime,
    impossible: int,
) -> Story:
    chapters = whole.chapters
    numbers = [chapter.generation for chapter in chapters]
    index = numbers.index(generation) if generation in numbers else len(chapters) - 1
    start, last = chapters[index].began, index + 1 == len(chapters)
    end = now if last else chapters[index + 1].began
    begins = min([start, *(chapter.began for chapter in chapters)])
    return Story(
        chapters=chapters,
        index=index,
        start=start,
        end=max(end, start),
        decisions=record.decisions,
        writes=[one for one in record.writes if start <= one.at <= end and one.subresource != "status"],
        lives=lives(record.writes, record.decisions, pods, begins, now),
        notes=whole.notes,
        impossible=impossible,
    )


def _plausible(records: Iterable[Record], now: datetime) -> list[tuple[datetime, Record]]:
    """Return the records with their times, without those with an impossible time."""
    found = [(record.at, record) for record in records]
    return [(at, one) for at, one in found if at is not None and at.tzinfo and now - OLDEST < at < now + AHEAD]


def _distinct(timed: Iterable[tuple[datetime, Record]]) -> list[Record]:
    """Return the records by time, each once."""
    found = {_identity(record): record for _, record in sorted(timed, key=lambda pair: pair[0])}
    return list(found.values())


def _identity(record: Act | Why) -> object:
    """Return what only a record that was published twice shares with another."""
    if isinstance(record, Act):
        what = (record.action, record.subresource, record.outcome, record.resource_version)
        return record.at, record.service, record.replica, record.kind, record.namespace, record.name, what
    return record.at, record.replica, record.uid, record.generation, record.resource_version


def _times(pod: Now) -> Pod:
    return Pod(created=pod.created, ready=pod.since if pod.ready else None)
