"""The lanes of a timeline: a line for each pod, and above them the unavailable pods against maxUnavailable."""

from collections.abc import Iterator, Sequence

from flotilla_common.api.kinds import catalogue
from flotilla_console import paths
from flotilla_console.blocks.types import Lane, Lanes, LaneSpan, Tick
from flotilla_console.model.workload import Workload
from flotilla_console.story import moments
from flotilla_console.story.lives import Life
from flotilla_console.story.story import Story
from flotilla_console.story.tree import LABELS, TONES
from flotilla_insight.published import Act

MOST_TICKS = 100


def lanes_of(one: Workload, story: Story, window: Sequence[Life], caption: str) -> Lanes:
    start, end = story.start.timestamp(), story.end.timestamp()
    service = catalogue.kind_of(one.kind.resource).service
    line = moments.unavailable(story.decisions, start, end)
    lanes = tuple(_lane(one, life, story) for life in window)
    ticks = (*_decided(story), *moments.handovers(story.decisions, story.writes, service))
    events = (
        [tick.at for tick in ticks] + [point.at for point in line] + [write.at.timestamp() for write in story.writes]
    )
    events += [span.start for lane in lanes for span in lane.spans]
    inside = sorted((tick for tick in ticks if start <= tick.at <= end), key=lambda tick: tick.at)
    return Lanes(
        id="lanes",
        caption=caption,
        start=start,
        end=end,
        lanes=lanes,
        gaps=moments.gaps(events, start, end),
        ticks=tuple(inside[-MOST_TICKS:]),
        line=line,
        ceiling=moments.allowed(story.decisions, start, end),
    )


def _decided(story: Story) -> Iterator[Tick]:
    for one in story.decisions:
        if one.at is not None:
            text = "; ".join(one.sentences) or "nothing left to do"
            yield Tick(one.at.timestamp(), "decision", "bad" if one.errors else "idle", text)


def _lane(one: Workload, life: Life, story: Story) -> Lane:
    """Return the lane of a pod."""
    starts = [max(phase.start, story.start) for phase in life.phases]
    ends = [*(phase.start for phase in life.phases[1:]), story.end]
    return Lane(
        key=life.name,
        label=life.name,
        href=paths.pod(one.namespace, life.name) if life.now is not None else "",
        spans=tuple(
            LaneSpan(start.timestamp(), min(end, story.end).timestamp(), TONES[phase.state], LABELS[phase.state])
            for phase, start, end in zip(life.phases, starts, ends, strict=True)
            if start < min(end, story.end) and phase.state != "deleted"
        ),
        ticks=tuple(_tick(write) for write in life.writes if story.start <= write.at <= story.end)[-MOST_TICKS:],
    )


def _tick(write: Act) -> Tick:
    said = f": {write.message}" if write.message else ""
    label = f"{write.action} {write.subresource}".rstrip()
    detail = f"{write.cause} → {write.outcome or 'no outcome'} {write.latency_ms:g} ms{said}"
    return Tick(write.at.timestamp(), label, "ok" if write.ok else "bad", detail.strip())
