"""The timeline of a workload: what was decided and written since a change, and what each pod was meanwhile."""

from collections.abc import Iterator
from datetime import UTC, datetime

from flotilla_common.api.keys import REVISION_LABEL
from flotilla_common.api.resources import POD
from flotilla_common.workload.causes import PodContext
from flotilla_console import paths
from flotilla_console.blocks.types import (
    Age,
    AnyBlock,
    Badge,
    Fact,
    Facts,
    Group,
    Heading,
    Link,
    Mono,
    Notice,
    Paragraph,
    Row,
    Span,
    Spans,
    Table,
    Text,
    Tone,
    spans,
)
from flotilla_console.model.seen import Seen, seen
from flotilla_console.model.sight import LIST
from flotilla_console.model.workload import Workload
from flotilla_console.page import Page, PageRequest, PageSpec
from flotilla_console.pages.as_it_was import moment_of, pods_table, tree_blocks
from flotilla_console.pages.lanes import lanes_of
from flotilla_console.pages.parts import LIMIT, ago, clock_text, commas, facts, offset_of, outcome_of, whole_table
from flotilla_console.story.lives import Now
from flotilla_console.story.records import Recorded, RecordReader
from flotilla_console.story.story import Story, compose
from flotilla_console.story.tree import by_trouble, is_quiet

MOST_CHAPTERS = 20
"""Changes of the spec to which the page links: the last ones."""

MOST_STEPS = 200
MOST_WRITES = 300
MOST_CHANGES_SHOWN = 30

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
        yield Paragraph(commas(Mono(change) for change in chapter.changes[:MOST_CHANGES_SHOWN]))
    yield Facts(_totals(story))
    sees_pods = _sees_pods(request, one)
    shown = by_trouble(story.lives, story.start, story.end) if sees_pods else []
    quiet = sum(is_quiet(life, story.start, story.end) for life in shown)
    offset = offset_of(request.query, len(shown))
    window = shown[offset : offset + LIMIT]
    yield lanes_of(one, story, window, f"{len(shown)} pods, {quiet} of them ready all the time")
    moment = moment_of(request, story)
    if shown:
        yield from tree_blocks(story, shown, moment)
        yield pods_table(one, window, story, moment, len(shown), offset)
    if sees_pods:  # both name pods
        yield _steps(story)
        yield _writes(story)


def _chapters(one: Workload, story: Story) -> Iterator[AnyBlock]:
    """Yield links to the other changes of the spec."""
    others: list[Span] = []
    for chapter in reversed(story.chapters[-MOST_CHAPTERS:]):
        label = f"{clock_text(chapter.began)} {_title(chapter.generation, chapter.title)}"
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


def _steps(story: Story) -> Table:
    """Return the chapter in words."""
    steps = story.chapter.steps
    rows = tuple(
        Row(
            key=str(index),
            cells=(
                spans(clock_text(step.at)),
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
                spans(clock_text(write.at)),
                spans(write.service),
                spans(f"{write.kind} {write.name}"),
                outcome_of(write),
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
