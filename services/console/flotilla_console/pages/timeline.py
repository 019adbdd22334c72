"""The timeline of a workload: what was decided and written since a change, and what each pod was meanwhile."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from flotilla_common.api.keys import REVISION_LABEL
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import POD
from flotilla_common.workload.causes import PodContext
from flotilla_console import paths
from flotilla_console.blocks.types import (
    Age,
    AnyBlock,
    Badge,
    Bar,
    Choice,
    Column,
    Fact,
    Facts,
    Group,
    Heading,
    Lane,
    Lanes,
    LaneSpan,
    Link,
    Mono,
    Notice,
    Paragraph,
    Part,
    Row,
    Slider,
    Span,
    Spans,
    Table,
    Text,
    Tick,
    Tone,
    spans,
)
from flotilla_console.model.seen import Seen, seen
from flotilla_console.model.sight import LIST
from flotilla_console.model.workload import Workload
from flotilla_console.page import Page, PageRequest, PageSpec
from flotilla_console.pages.parts import LIMIT, ago, commas, facts, offset_of, whole_table
from flotilla_console.story import moments
from flotilla_console.story.lives import Life, Now
from flotilla_console.story.records import Recorded, RecordReader
from flotilla_console.story.story import Story, compose
from flotilla_console.story.tree import LABELS, TONES, Branch, by_trouble, is_quiet, tree
from flotilla_insight.published import Act

MOST_CHAPTERS = 20
"""Changes of the spec to which the page links: the last ones."""

MOST_MOMENTS = 200
"""Moments of the slider; of more, evenly many are left out."""

MOST_STEPS = 200
MOST_WRITES = 300
MOST_TICKS = 100
MOST_NAMES = 30

_STEP_TONES: dict[str, Tone] = {
    "decision": "idle",
    "write": "busy",
    "wait": "warn",
    "bad": "bad",
    "note": "idle",
    "end": "ok",
}


def page(reader: RecordReader) -> PageSpec:
    """Return the page, which reads records by `reader`."""

    async def prepare(request: PageRequest) -> object:
        one = _workload(request)
        if one is None or not one.kind.resource.custom:
            return None
        return await reader.read(one.kind.resource, one.namespace, one.name)

    return PageSpec(
        name="timeline",
        path="/workloads/{group}/{plural}/{namespace}/{name}/timeline",
        build=build,
        prepare=prepare,
        parameters=("generation", "at", "offset"),
    )


def build(request: PageRequest) -> Page | None:
    """Return the page; None if the workload does not exist or may not be seen."""
    one = _workload(request)
    if one is None:
        return None
    recorded = request.read if isinstance(request.read, Recorded) else Recorded()
    story = compose(
        recorded,
        one.kind.resource,
        one.namespace,
        one.name,
        pods=_pods(request, one),
        generation=_number(request.query.get("generation", "")),
        now=datetime.fromtimestamp(request.now, UTC),
    )
    return Page(
        title=f"Timeline of {one.kind.resource.kind} {one.name}",
        trail=(Link("Fleet", paths.FLEET), Link(one.name, _path(one))),
        blocks=(*_notices(request, one, recorded, story), *(_blocks(request, one, story) if story.chapters else ())),
    )


def _workload(request: PageRequest) -> Workload | None:
    group, plural, namespace, name = (request.params[part] for part in ("group", "plural", "namespace", "name"))
    return request.sight.workload(
        "" if group == paths.CORE else group, plural, "" if namespace == paths.CLUSTER else namespace, name
    )


def _path(one: Workload, *rest: str, **query: str) -> str:
    return paths.workload(one.group, one.plural, one.namespace, one.name, *rest, query=query or None)


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 16 else None


def _pods(request: PageRequest, one: Workload) -> list[Now]:
    context = PodContext(now=datetime.fromtimestamp(request.now, UTC))
    return [_now(pod) for pod in seen(request.sight.pods_of(one), context)]


def _now(one: Seen) -> Now:
    pod = one.pod
    ready = pod.conditions.get("Ready")
    return Now(
        name=pod.metadata.name,
        ready=one.serving,
        since=ready.last_transition_time if ready is not None else None,
        created=pod.metadata.creation_timestamp,
        revision=pod.metadata.labels.get(REVISION_LABEL, ""),
        terminating=pod.metadata.deletion_timestamp is not None,
        waits_for=one.waits_for,
    )


def _sees_pods(request: PageRequest, one: Workload) -> bool:
    return request.sight.may(LIST, POD, one.namespace)


def _notices(request: PageRequest, one: Workload, recorded: Recorded, story: Story) -> Iterator[AnyBlock]:
    if recorded.error:
        yield Notice("bad", spans(f"Not all is shown: {recorded.error}."))
    if recorded.cut:
        yield Notice("warn", spans(f"The past is cut off: {recorded.cut} older records are not shown."))
    if wrong := recorded.unreadable + story.impossible:
        yield Notice("warn", spans(f"{wrong} records cannot be read, or have an impossible time."))
    for note in story.notes:
        yield Notice("idle", spans(f"{note[:1].upper()}{note[1:]}."))
    if not _sees_pods(request, one):
        yield Notice("idle", spans("You may not list pods in this namespace, so they are not shown."))
    if not story.chapters:
        why = "the bus has none" if one.kind.resource.custom else "Flotilla's services do not plan this kind"
        yield Notice("idle", spans(f"There are no records about this workload: {why}."))


def _blocks(request: PageRequest, one: Workload, story: Story) -> Iterator[AnyBlock]:
    chapter = story.chapter
    yield from _chapters(one, story)
    yield Heading(_title(chapter.generation, chapter.title), id="change")
    if chapter.changes:
        yield Paragraph(commas(Mono(change) for change in chapter.changes[:MOST_NAMES]))
    yield Facts(_totals(story))
    sees_pods = _sees_pods(request, one)
    shown = by_trouble(story.lives, story.start, story.end) if sees_pods else []
    quiet = sum(is_quiet(life, story.start, story.end) for life in shown)
    offset = offset_of(request.query, len(shown))
    window = shown[offset : offset + LIMIT]
    yield _lanes(one, story, window, f"{len(shown)} pods, {quiet} of them ready all the time")
    moment = _moment(request, story)
    if shown:
        yield from _tree(story, shown, moment)
        yield _pods_table(one, window, story, moment, len(shown), offset)
    if sees_pods:  # both name pods
        yield _steps(story)
        yield _writes(story)


def _chapters(one: Workload, story: Story) -> Iterator[AnyBlock]:
    """Yield links to the other changes of the spec."""
    others: list[Span] = []
    for chapter in reversed(story.chapters[-MOST_CHAPTERS:]):
        label = f"{_clock(chapter.began)} {_title(chapter.generation, chapter.title)}"
        if chapter is story.chapter:
            others.append(Badge("shown: " + label, "idle"))
        else:
            others.append(Link(label, _path(one, "timeline", generation=str(chapter.generation))))
    if len(others) > 1:
        yield Paragraph((Text("Changes: "), *commas(others)))


def _title(generation: int, title: str) -> str:
    return f"generation {generation}, {title}" if generation > 0 else title


def _totals(story: Story) -> tuple[Fact, ...]:
    chapter, totals = story.chapter, story.chapter.totals
    done: Spans = spans("done ", Age(chapter.done.timestamp()), " ago") if chapter.done else spans("not done")
    items: list[tuple[str, Span | Spans | str]] = [("Began", ago(chapter.began.timestamp())), ("State", done)]
    if totals is not None:
        refused = f", {totals.refused} failed" if totals.refused else ""
        items.append(("Lasted", f"{totals.seconds:g} s"))
        items.append(("Writes", f"{totals.writes}{refused}; {totals.pod_writes} of them to {totals.pods} pods"))
        items.append(("Decisions", str(totals.decisions)))
        if totals.typical_seconds is not None:
            slowest = f"{totals.slowest_seconds:g} s for {totals.slowest}"
            items.append(("A pod took", f"{totals.typical_seconds:g} s (median), at most {slowest}"))
    return facts(*items)


def _lanes(one: Workload, story: Story, window: Sequence[Life], caption: str) -> Lanes:
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


def _moment(request: PageRequest, story: Story) -> datetime:
    """Return the moment of the slider: the end, or the one that was asked for."""
    try:
        asked = datetime.fromtimestamp(float(request.query.get("at", "")), UTC)
    except (ValueError, OverflowError, OSError):
        return story.end
    return min(max(asked, story.start), story.end)


def _tree(story: Story, shown: Sequence[Life], moment: datetime) -> Iterator[AnyBlock]:
    yield Heading("As it was", id="as-it-was")
    choices = _choices(story)
    value = max((one.value for one in choices if float(one.value) <= moment.timestamp() + 0.001), key=float, default="")
    yield Slider("at", "Moment", choices, value or choices[0].value)
    branches = tree(shown, moment)
    rows = tuple(_branch(branch) for branch in branches)
    columns = (("revision", "Revision"), ("pods", "Pods"), ("names", "Names"))
    yield whole_table("tree", f"Revisions and pods at {_clock(moment)}", columns, rows)


def _choices(story: Story) -> tuple[Choice, ...]:
    """Return the moments at which something happened, and the end."""
    found = {story.start: "the change", **{write.at: _about(write) for write in story.writes}, story.end: "the end"}
    ordered = sorted(found.items())
    step = -(-len(ordered) // MOST_MOMENTS)
    kept = ordered[::-1][::step][::-1]
    return tuple(Choice(f"{at.timestamp():.3f}", f"{_clock(at)} {label}") for at, label in kept)


def _about(write: Act) -> str:
    return f"{write.action} {write.kind} {write.name}"


def _branch(branch: Branch) -> Row:
    parts = tuple(Part(LABELS[state], count, TONES[state]) for state, count in branch.counts.items())
    names: list[Span | str] = [f"{name} ({LABELS[state]})" for name, state in branch.pods[:MOST_NAMES]]
    more = len(branch.pods) - len(names)
    return Row(
        key=branch.revision or "-",
        cells=(
            spans(Mono(branch.revision)) if branch.revision else spans("an earlier one"),
            spans(Bar("", parts, len(branch.pods))),
            (*commas(names), *spans(f" and {more} more" if more else "")),
        ),
    )


def _pods_table(
    one: Workload, window: Sequence[Life], story: Story, moment: datetime, total: int, offset: int
) -> Table:
    """Return the pods of the lanes as a table, which also pages through them."""
    return Table(
        id="pods",
        caption=f"Pods at {_clock(moment)}",
        columns=(
            Column("name", "Pod"),
            Column("state", "State"),
            Column("revision", "Revision"),
            Column("writes", "Writes", numeric=True),
            Column("last", "Last write"),
            Column("why", "Waits for"),
        ),
        rows=tuple(_pod_row(one, life, story, moment) for life in window),
        total=total,
        offset=offset,
        limit=LIMIT,
    )


def _pod_row(one: Workload, life: Life, story: Story, moment: datetime) -> Row:
    phase = life.at(moment)
    writes = [write for write in life.writes if story.start <= write.at <= moment]
    last = writes[-1] if writes else None
    name = Link(life.name, paths.pod(one.namespace, life.name)) if life.now is not None else life.name
    return Row(
        key=life.name,
        cells=(
            spans(name),
            spans(Badge(LABELS[phase.state], TONES[phase.state]) if phase is not None else "does not exist yet"),
            spans(Mono(phase.revision)) if phase is not None and phase.revision else (),
            spans(str(len(writes))),
            _outcome(last) if last is not None else (),
            spans(life.now.waits_for if life.now is not None else ""),
        ),
        tone=TONES[phase.state] if phase is not None else None,
    )


def _outcome(write: Act) -> Spans:
    text = f"{write.action} {write.subresource}".rstrip()
    return spans(f"{text}, {write.cause} ", Badge(write.outcome or "no outcome", "ok" if write.ok else "bad"))


def _steps(story: Story) -> Table:
    """Return the chapter in words."""
    steps = story.chapter.steps
    rows = tuple(
        Row(
            key=str(index),
            cells=(
                spans(_clock(step.at)),
                spans(Badge(step.tone, _STEP_TONES.get(step.tone, "idle"))),
                spans(step.text),
            ),
        )
        for index, step in enumerate(steps[-MOST_STEPS:])
    )
    cut = f", the last {MOST_STEPS} of {len(steps)}" if len(steps) > MOST_STEPS else ""
    return whole_table("steps", f"In words{cut}", (("at", "Time"), ("what", "What"), ("text", "Text")), rows)


def _writes(story: Story) -> Group:
    """Return the single writes."""
    rows = tuple(
        Row(
            key=str(index),
            cells=(
                spans(_clock(write.at)),
                spans(write.service),
                spans(f"{write.kind} {write.name}"),
                _outcome(write),
                spans(f"{write.latency_ms:g} ms"),
                spans(write.message),
            ),
        )
        for index, write in enumerate(story.writes[-MOST_WRITES:])
    )
    columns = (
        ("at", "Time"),
        ("service", "Service"),
        ("object", "Object"),
        ("write", "Write"),
        ("latency", "Took"),
        ("message", "Message"),
    )
    count = len(story.writes)
    cut = f", the last {MOST_WRITES}" if count > MOST_WRITES else ""
    return Group("writes", spans(f"{count} writes{cut}"), (whole_table("each-write", "Writes", columns, rows),))


def _clock(moment: datetime) -> str:
    """Format a moment to the millisecond, in UTC."""
    return f"{moment.astimezone(UTC):%H:%M:%S}.{moment.microsecond // 1000:03d}"
